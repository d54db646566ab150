"""Documents in other languages than English: found by their own stems, compounds, particles and scripts."""

from __future__ import annotations

import pathlib

import pytest

from sire_core import Document, Index
from sire_core.documents.chunker import chunk_document
from sire_core.errors import ConfigurationError
from sire_core.extraction.rules import RulesExtractor
from sire_core.search.extracts import extract_sentences
from sire_core.search.unanswered import unanswered_note
from sire_core.text.asking import asking_rules
from sire_core.text.languages import find_language, language
from sire_core.types import Chunk, Hit, Unit, UnitKind
from support.indexes import indexed

KOREAN = (
    ("기차", "어제 우리는 기차를 타고 바다로 갔다."),
    ("학교", "아이들은 학교에서 노래를 배운다."),
    ("책", "도서관은 오래된 책을 빌려준다."),
    ("병원", "의사는 병원으로 급히 돌아갔다."),
    ("우유", "고양이가 우유를 모두 마셨다."),
    ("나무", "바람이 나무들을 흔들었다."),
    ("시장", "상인은 시장까지 걸어서 갔다."),
    ("컴퓨터", "직원이 컴퓨터는 고장 났다고 말했다."),
)
GERMAN = (
    ("Was zahlt die Haftpflicht?", "Die Haftpflichtversicherung kommt für Schäden am Eigentum anderer auf."),
    ("Wo steht die Versicherung?", "Im Ordner liegt die Gebäudeversicherung von 2019."),
    ("Wie tief ist der Brunnen?", "Der Dorfbrunnen reicht zwölf Meter hinab."),
    ("Wer pflegt den Garten?", "Um den Schulgarten kümmert sich Frau Albers."),
    ("Welche Farbe hat das Dach?", "Das Kirchendach ist grün gedeckt."),
    ("Wann öffnet das Schwimmbad?", "Das Bad am See öffnet um acht Uhr."),
    ("Wer baut Orgeln?", "Die Orgelbauer kommen aus dem Nachbarort."),
)
COMPOUNDS = {
    "nl": ("Wanneer komt de verzekering?", "De zorgverzekering begint in januari van het jaar."),
    "sv": ("Var står biblioteket?", "Det nya stadsbiblioteket ligger vid torget och har öppet."),
    "fi": ("Missä kirjasto on?", "Uusi kaupunginkirjasto on torin laidalla, ja se on auki."),
}
OTHERS = {
    "nl": ("De trein rijdt niet op zondag.", "Het weer wordt vandaag beter dan gisteren."),
    "sv": ("Tåget går inte på söndag.", "Vi har en hund som heter Rex."),
    "fi": ("Juna ei kulje sunnuntaina.", "Meillä on koira, joka on vanha."),
}


def hits(pages, question, **options):
    with Index(recipe="sire", chunker=None, embedder="lexical", **options) as index:
        index.build([Document(str(number), text) for number, text in enumerate(pages)])
        return [hit.doc_ids[0] for hit in index.search(question, 3)]


def firsts(pairs):
    """How many questions have their own page first, among the pages of all."""
    with Index(recipe="sire", chunker=None, embedder="lexical") as index:
        index.build([Document(str(number), text) for number, (_, text) in enumerate(pairs)])
        return [number for number, (word, _) in enumerate(pairs) if index.search(word, 1)[0].doc_ids == (str(number),)]


def test_korean_nouns_are_found_with_particles():
    assert len(firsts(KOREAN)) >= 7


def test_parts_of_german_compounds_are_found():
    assert len(firsts(GERMAN)) >= 6


@pytest.mark.parametrize("code", COMPOUNDS)
def test_parts_of_compounds_are_found(code):
    question, page = COMPOUNDS[code]
    assert hits([*OTHERS[code], page], question)[0] == "2"


@pytest.mark.parametrize(
    ("question", "page", "others"),
    [
        ("istanbul nerede", "İSTANBUL boğazın iki yakasında.", ("Ankara bir başkenttir.", "Deniz çok mavi.")),
        ("שלום", "אמרו שָׁלוֹם והלכו", ("הילד אכל", "הכלב רץ")),
        ("كتاب احمد", "قرأتُ كِتابَ أحمد أمس", ("ذهب الولد", "البيت كبير")),
        ("поездами", "В город пришёл поезд из Днепра.", ("Кошка спит на окне.", "Мы пили чай.")),
        ("サーバの再起動", "管理者はサーバーを再起動する。", ("猫が鳴く。", "再び春が来た。")),
        ("exim4 설정", "관리자는 exim4를 다시 설정했다.", ("고양이가 잔다.", "설정을 모두 지웠다.")),
        ("senora", "La señora de la casa está en el jardín.", ("El perro come.", "El sol sale.")),
    ],
    ids=["turkish", "hebrew", "arabic", "russian", "japanese", "korean", "spanish"],
)
def test_letters_and_signs_that_writers_leave_out(question, page, others):
    assert hits([*others, page], question)[0] == "2"


MIXED = (
    "The old houses stand on the hill, and they are painted white.",
    "Die alten Häuser stehen auf dem Hügel, und sie sind weiß gestrichen.",
    "Die Züge fahren nicht am Sonntag, weil es keine Fahrer gibt.",
    "The trains do not run on Sunday, because there are no drivers.",
)


def test_a_mixed_folder_is_searched_in_each_language():
    assert hits(MIXED, "Wo steht das Haus?")[0] == "1"
    assert hits(MIXED, "Where is the house?")[0] == "0"
    assert hits(MIXED, "Wann fährt der Zug?")[0] == "2"
    assert hits(MIXED, "When does the train run?")[0] == "3"


def test_languages_are_found_stored_and_shown(tmp_path: pathlib.Path):
    with indexed([Document(str(number), text) for number, text in enumerate(MIXED)], tmp_path / "index") as index:
        assert index.stats()["languages"] == {"de": 2, "en": 2}
        index.add([Document("stated", "Rechnung 12", metadata={"lang": "de-AT"})])
        assert index.stats()["languages"] == {"de": 3, "en": 2}
    with Index(tmp_path / "index", language="german") as index:
        index.add([Document("set", "Rechnung 13"), Document("own", "Faktura 14", metadata={"lang": "pl"})])
        assert index.stats()["languages"] == {"de": 4, "en": 2, "pl": 1}
        assert index.documents(["set"])[0].metadata == {"lang": "de"}


def test_an_unknown_language_is_refused_with_advice():
    with pytest.raises(ConfigurationError, match=r"'klingon'.*'de'"):
        Index(language="klingon")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Das Paket liegt bei dem Nachbarn, und niemand hat es geholt.", "de"),
        ("Le colis est chez le voisin et personne ne l'a pris.", "fr"),
        ("荷物は隣の家にあります。", "ja"),
        ("包裹在邻居家里。", "zh"),
        ("Пакунок лежить у сусіда, і ніхто його не взяв.", "uk"),
        ("The parcel is at the neighbour's, and nobody has taken it.", "en"),
        ("Cuando en el cielo is a 1945 Argentine film that was directed by Carlos Borcosque.", "en"),
        ("x = 12; y = f(x)", "und"),
    ],
)
def test_the_language_of_a_text(text, code):
    assert find_language(text) == code


LETTER = """Liebe Kolleginnen und Kollegen,

Niemand hat das Paket bei der Zentrale geholt. Paket und Lieferschein hat jetzt Sabine Krause. Die
Haftpflichtversicherung zahlt nicht. Der WireGuard-Server steht in Frankfurt.
"""
LETTRE = """Chers collègues, personne n'a pris le colis. Combien de colis sont restés à Marseille ? Les horaires ont
changé, dit Claire Dupont.
"""


@pytest.mark.parametrize(
    ("text", "wanted", "unwanted"),
    [
        (
            LETTER,
            {"Sabine Krause", "WireGuard-Server", "Frankfurt"},
            {
                "Niemand",
                "Paket",
                "Liebe Kolleginnen",
                "Kollegen",
                "Lieferschein",
                "Zentrale",
                "Haftpflichtversicherung",
            },
        ),
        (LETTRE, {"Marseille", "Claire Dupont"}, {"Chers", "Combien", "Les"}),
    ],
)
def test_function_words_greetings_and_german_nouns_are_no_names(text, wanted, unwanted):
    (record,) = RulesExtractor().records([Chunk("c", "d", 0, "", text)])
    names = {entity.name for entity in record.entities}
    assert wanted <= names
    assert not unwanted & names


def test_every_script_without_spaces_has_pairs_of_letters_with_their_signs():
    assert language("th").words("ที่นี่") == ["ที่นี่"]
    assert language("zh").words("北京大学") == ["北京", "京大", "大学"]
    assert language("km").words("ខ្មែរ") == ["ខ្មែរ"]


POLISH = (
    Document("moskwa", "To miasto leży nad rzeką i jest stolicą kraju, który ma wielu mieszkańców.", title="Moskwa"),
    Document("pociąg", "Stary pociąg jedzie z Moskwy do portu, a potem wraca przez las i pola."),
    Document("wolny", "Nie ma już wolnych miejsc, bo wszyscy chcą jechać dzisiaj."),
    Document("wolna", "Ta rzeka jest długa i płynie przez cały kraj do morza.", title="Wolna"),
)


def test_names_that_change_their_endings_lead_to_their_passage():
    with indexed(POLISH, recipe="sire", chunker=None, embedder="lexical") as index:
        hits = {hit.doc_ids[0]: hit for hit in index.search("Nad czym leży stolica, z której jedzie stary pociąg?", 4)}
        assert any(step.step == "entity" and "Moskwa" in step.note for step in hits["moskwa"].path)
        assert not any(step.step == "entity" for step in hits["wolna"].path)


@pytest.mark.parametrize(
    ("text", "question", "quoted"),
    [
        (
            "Der Bahnhof liegt am Fluss. Alle Züge halten dort nur am Vormittag. Die Schule ist neben der Kirche.",
            "Wann hält dort der Zug?",
            "Alle Züge halten dort nur am Vormittag.",
        ),
        (
            "Вокзал стоит у реки. Все поезда приходят сюда только утром. Школа находится рядом с церковью.",
            "Когда ждать поезд?",
            "Все поезда приходят сюда только утром.",
        ),
    ],
    ids=["german", "russian"],
)
def test_quotes_answer_in_the_forms_of_the_language(text, question, quoted):
    assert first_quote(text, question, find_language(text)) == quoted


def first_quote(text, question, code):
    """The quote of a passage, one sentence long."""
    return extract_sentences(question, [hit_of(text, code)], 11)[0].text


def hit_of(text, code):
    (chunk,) = chunk_document(Document("d", text, metadata={"lang": code}))
    return Hit(Unit(chunk.id, UnitKind.CHUNK, text, (chunk.id,), layout=chunk.layout), 1.0, ("d",))


@pytest.mark.parametrize(
    ("code", "question", "answer", "other"),
    [
        ("de", "Wie lange wartet der Server?", "Der Server wartet 30 Minuten.", "Der Server wartet auf den Client."),
        ("de", "Wo wartet der Server?", "Der Server wartet in Frankfurt.", "Der Server wartet auf den Client."),
        ("de", "Wann endet die Aktion?", "Die Aktion endet im Mai.", "Die Aktion endet ohne Fehler."),
        (
            "fr",
            "Combien de temps attend le serveur ?",
            "Le serveur attend 30 minutes.",
            "Le serveur attend la réponse.",
        ),
        (
            "fr",
            "Qui dirige le service ?",
            "Le service est dirigé par Claire Dupont.",
            "Le service est dirigé depuis hier.",
        ),
        ("es", "¿Cuánto tiempo espera el servidor?", "El servidor espera 30 segundos.", "El servidor espera la señal."),
        ("it", "Quanto tempo attende il server?", "Il server attende 5 giorni.", "Il server attende la risposta."),
        ("pt", "Quanto tempo espera o servidor?", "O servidor espera 5 dias.", "O servidor espera pela resposta."),
        ("nl", "Hoe lang wacht de server?", "De server wacht 5 dagen.", "De server wacht op het antwoord."),
        ("pl", "Ile minut czeka serwer?", "Serwer czeka 30 minut.", "Serwer czeka na odpowiedź."),
        ("ru", "Сколько минут ждёт сервер?", "Сервер ждёт 30 минут.", "Сервер ждёт ответа от клиента."),
        ("tr", "Sunucu kaç dakika bekler?", "Sunucu 30 dakika bekler.", "Sunucu istemciyi hep bekler."),
        ("ar", "كم دقيقة ينتظر الخادم؟", "ينتظر الخادم 30 دقيقة.", "ينتظر الخادم رد العميل."),
        ("zh", "服务器等待多久？", "服务器等待三十分钟。", "服务器等待客户端回答。"),
        ("ja", "サーバは何分待ちますか。", "サーバは30分待ちます。", "サーバは返事を待ちます。"),
        (
            "ko",
            "서버는 몇 분 기다립니까?",
            "서버는 30분 기다립니다.",
            "서버는 다른 컴퓨터가 보내는 응답을 늘 조용히 기다립니다.",
        ),
    ],
)
def test_answers_have_the_time_the_place_or_the_name_that_is_asked_for(code, question, answer, other):
    assert first_quote(f"{other}\n\n{answer}", question, code) == answer


def test_korean_verbs_with_other_endings_are_not_missed():
    page = "기차는 오전에만 여기에 섭니다."
    assert unanswered_note("기차는 언제 여기에 섭니까?", [hit_of(page, "ko")]) == ""


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Wie lange hält der Akku, und wo wird das Ladegerät gekauft?", 2),
        ("Quel port utilise le serveur et comment changer le mot de passe ?", 2),
        ("サーバのポートは何番ですか。設定はどこにありますか。", 2),
        ("Где лежат журналы и сколько дней они хранятся?", 2),
        ("Der Akku und das Netzteil, sind sie neu?", 1),
        ("How is the pump started, and members of which group may stop it?", 2),
        ("Where was the actor and film director who made Salt Lantern born?", 1),
    ],
)
def test_parts_of_questions_in_their_language(question, parts):
    spoken = language(find_language(question, ("de", "en", "fr", "ja", "ru")))
    assert len(asking_rules(spoken).parts(question)) == parts


def test_quotes_of_chinese_and_japanese_have_no_space_between_sentences_or_lines():
    page = hit_of("每天最高\n四十元。住院患者可以使用停车场。", "zh")
    assert [quote.text for quote in extract_sentences("停车场每天最高多少元？", [page])] == [
        "每天最高四十元。住院患者可以使用停车场。"
    ]


def test_columns_of_tables_below_headings_are_named():
    text = "# Hallen\n\nDie Hallen sind nicht klein.\n\n## Preise\n\n| Halle | Plätze | Preis |\n|---|---|---|\n| Platanen | 300 | 1.750 Euro |\n"
    (quote,) = extract_sentences("Welchen Preis hat die Halle Platanen?", [hit_of(text, "de")])
    assert quote.text == "Platanen: Plätze 300; Preis 1.750 Euro"


@pytest.mark.parametrize(
    ("code", "first", "second", "question"),
    [
        (
            "de",
            "Die Verwaltung der Klinik hat im Jahr 2019 Frau Katharina Wolters übernommen, und sie ist nicht neu.",
            "Seit vielen Jahren ist Katharina Wolters nicht mehr in Ulm, und das ist gut so.",
            "Wo ist die Verwalterin der Klinik zu Hause?",
        ),
        (
            "fr",
            "La clinique est dirigée par Mme Hélène Marchetti depuis dix ans, et elle est au centre.",
            "Enfant, Hélène Marchetti était à Besançon, où elle a fait ses études avec son frère.",
            "Qui dirige la clinique ?",
        ),
    ],
)
def test_names_behind_titles_lead_to_passages_without(code, first, second, question):
    others = ("Das Wetter ist heute besser als gestern.", "Le temps est plus beau que cette semaine.", "Nebel.", "Eis.")
    assert hits([first, *others, second], question, language=code)[:2] == ["0", "5"]
