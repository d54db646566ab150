"""Small English word lists for extraction without a model. All lower case."""

from __future__ import annotations


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
WEEKDAYS = _set("monday tuesday wednesday thursday friday saturday sunday")

PRONOUNS = _set(
    "i me my mine we us our you your he him his she her hers it its they them their theirs this that these those who "
    "whom whose which what himself herself itself themselves one someone somebody everyone there here"
)

FUNCTION_WORDS = PRONOUNS | _set(
    "a an the and or but nor so yet if then than as at by for from in into of off on onto out over to under up upon "
    "with within without about above across after against along among around because before behind below beneath "
    "beside besides between beyond despite down during except inside like near outside past per plus since through "
    "throughout till toward towards until unlike via whether while when where why how although though however also "
    "not no none any all both each either neither every few more most much many other others another some several "
    "such same own only just very too even still again ever never once always often sometimes usually now later "
    "is am are was were be been being has have had having do does did doing done will would shall should can could "
    "may might must cannot let s t d ll re ve well back further else therefore thus hence instead otherwise etc"
)
"""Words that neither name nor describe."""

OPENERS = _set(
    "according additionally afterwards alongside apart approximately based beginning born built called consequently "
    "currently described designed despite directed due early eventually featuring finally first following formerly "
    "founded generally given growing historically initially including indeed known last lastly late located "
    "mainly meanwhile moreover mostly named nearly nevertheless next nonetheless notable notably noted "
    "original originally overall owing part people previously primarily produced published raised rather recently "
    "regarding released second set shortly similarly situated soon starring subsequently third today together two "
    "three four five six seven eight nine ten twelve twenty traditionally ultimately upon using usually written "
    "unfortunately fellow former future new several critics members other scholars see note episode chapter series "
    "season film films song songs album albums music book books novel novels story plot population children women "
    "men students players work works life death history critical guitar vocals directors producers writers "
    "having being making taking when whenever wherever whereas years year despite educated established completed "
    "ep lp cd dvd tv phd ma ba bsc msc mba ad bc bce ce ceo cto cfo vs am pm ok ii iii "
    "furthermore alternatively likewise conversely accordingly admittedly presumably fortunately importantly anyway "
    "interestingly surprisingly obviously nowadays meantime henceforth thereafter hereafter incidentally inversely "
    "curiously regrettably luckily sadly undoubtedly arguably hopefully thankfully albeit notwithstanding "
    "jan feb mar apr jun jul aug sep sept oct nov dec tue wed thu fri fig needless op cit ibid "
    "opened formed created recorded performed considered elected appointed married died won worked played"
)
"""Words that often open a sentence and are not names."""

HONORIFICS = _set(
    "mr mrs ms dr sir dame lord lady prof professor president king queen emperor empress prince princess duke duchess "
    "count countess earl baron baroness marquess marquis viscount archduke archduchess tsar czar tsarina tsarevich "
    "sultan shah khan pope saint cardinal bishop archbishop reverend rev father brother sister captain capt major "
    "colonel col general gen lieutenant lt sergeant sgt admiral commander marshal chief governor gov senator sen "
    "congressman representative rep secretary minister chancellor mayor judge justice ambassador premier director "
    "coach detective inspector officer private corporal grand crown high prime vice deputy emir sheikh rabbi imam "
    "landgravine margravine electress viscountess marchioness baronet shogun maharaja raja nawab begum pharaoh "
    "mother aunt uncle doctor triumvir consul landgrave margrave elector infanta infante actor actress singer author "
    "writer producer composer rapper"
)
"""Ranks and titles before a person's name."""

EPITHETS = _set(
    "elder younger great good bad bold bald fat pious conqueror confessor lion fair wise simple short tall "
    "handsome stout strong lame fearless rich proud posthumous child brave black white red blue magnificent impaler "
    "baptist terrible cruel peaceful quarrelsome bear apostate catholic just hunchback illustrious silent blind"
)
"""Words that may follow `the` in a person's name."""

ABBREVIATIONS = (
    "St|Ste|Mt|Ft|Dr|Mr|Mrs|Ms|Jr|Sr|Prof|Gen|Col|Capt|Lt|Maj|Sgt|Rev|Hon|Gov|Sen|Rep|Bros|Inc|Ltd|Co|Corp|No"
)
"""Abbreviations whose period belongs to the name, as a pattern."""

UNITS = (
    r"square (?:kilomet(?:re|er)s?|miles?|feet|met(?:re|er)s?)|sq (?:mi|km|ft)|km[²2]?|mi[²2]?|kilomet(?:re|er)s?|"
    r"met(?:re|er)s?|miles?|feet|foot|ft|inch(?:es)?|cm|mm|acres?|hectares?|ha|yards?|kg|kilograms?|pounds?|lbs?|"
    r"tons?|tonnes?|percent|per cent|%|people|inhabitants|residents|copies|students|employees|seats|members|votes|"
    r"kHz|MHz|GHz|watts|kW|MW|dollars|euros|rupees|pesos|yen|minutes|hours|days|weeks|months|years|episodes|points|"
    r"goals|games|matches|households|families|species|soldiers|men|passengers|viewers"
)
"""Units of quantities, as a pattern."""

NAME_TAILS: dict[str, str] = {
    word: kind
    for kind, words in {
        "Organization": (
            "university college company corporation inc ltd co corp llc records entertainment pictures productions "
            "studios studio school academy institute institution party club association society foundation orchestra "
            "band ensemble choir council committee commission ministry department agency bureau bank airlines airways "
            "league federation union group team army navy regiment division brigade press publishing magazine "
            "newspaper times post network television radio channel broadcasting church cathedral abbey museum gallery "
            "library hospital parliament senate congress assembly court police service services brothers bros "
            "conservatory seminary laboratory laboratories industries systems technologies motors theatre theater "
            "films music label fc united rovers wanderers athletic dynasty ltd. inc. co. corp. bros."
        ),
        "Location": (
            "river county city town village street avenue road boulevard island islands lake mountain mountains "
            "district province township park state region valley bay sea ocean peninsula desert forest bridge airport "
            "station square palace castle territory republic kingdom empire highway beach creek hill hills canyon "
            "prefecture municipality parish borough heights springs falls canal harbor harbour port cemetery oblast "
            "raion taluk tehsil"
        ),
        "Event": (
            "war wars battle festival olympics championship championships cup election elections revolution siege "
            "games tournament awards award ceremony season open prix conference convention rebellion uprising massacre "
            "crisis campaign exhibition expedition crusade series bowl final finals derby marathon race congress"
        ),
    }.items()
    for word in words.split()
}
"""Type of a name by its last word."""

KIND_NOUNS: dict[str, str] = {
    word: kind
    for kind, words in {
        "Work": (
            "film films movie documentary comedy drama thriller western musical song single album ep soundtrack "
            "mixtape novel novella book story play opera ballet poem painting sculpture series sitcom show program "
            "programme episode game videogame magazine journal newspaper comic comics manga anime treatise essay "
            "symphony concerto composition track remake sequel adaptation miniseries serial anthology encyclopedia "
            "trilogy fresco manuscript article website weekly telenovela feature short poster ballad hymn recording"
        ),
        "Organization": (
            "company corporation band group duo trio quartet orchestra ensemble university college school academy "
            "institute organization organisation party club team association society foundation agency label studio "
            "publisher bank airline brand retailer manufacturer chain network station channel league museum church "
            "hospital newspaper regiment unit force firm charity council committee family dynasty tribe brewery "
            "distributor restaurant"
        ),
        "Location": (
            "village town city municipality commune district province region county state country river lake island "
            "mountain hill suburb neighborhood neighbourhood township settlement parish locality community place "
            "area peninsula bay sea valley park building house castle palace bridge road street highway airport port "
            "stadium cemetery cathedral tower capital tributary stream creek hamlet borough republic kingdom empire "
            "territory volcano glacier beach reservoir canal"
        ),
        "Event": (
            "war battle siege festival tournament championship election event competition season ceremony treaty "
            "revolution rebellion conference massacre earthquake hurricane operation campaign referendum rivalry award "
            "disaster attack"
        ),
        "Person": (
            "actor actress singer rapper musician composer songwriter director filmmaker producer writer author poet "
            "novelist playwright screenwriter journalist politician statesman lawyer judge king queen emperor empress "
            "prince princess duke duchess count countess earl baron noblewoman nobleman noble lord lady ruler monarch "
            "pope bishop archbishop cardinal priest monk saint nun general officer soldier admiral commander "
            "footballer player athlete boxer swimmer cyclist wrestler coach manager golfer cricketer sailor runner "
            "rower skater driver scientist physicist chemist mathematician philosopher economist historian "
            "professor teacher scholar academic engineer architect painter sculptor artist photographer illustrator "
            "model dancer choreographer comedian host presenter businessman businesswoman entrepreneur businessperson "
            "physician doctor surgeon daughter son wife husband mother father brother sister member leader activist "
            "guitarist drummer bassist vocalist pianist conductor cinematographer editor astronaut explorer "
            "missionary theologian diplomat ambassador mayor senator president minister knight peer heir consort "
            "personality socialite magician chef designer woman man person character"
        ),
    }.items()
    for word in words.split()
}
"""Type of X by the head noun of `X is a ...`. Later groups win."""

PERSON_SUFFIXES = (
    "ist",
    "ician",
    "ologist",
    "grapher",
    "maker",
    "player",
    "man",
    "woman",
    "ess",
    "ian",
    "eur",
    "wright",
)
"""Suffixes of nouns for occupations."""

DEMONYMS = _set(
    "american british english scottish welsh irish french german italian spanish portuguese dutch belgian swiss "
    "austrian danish swedish norwegian finnish icelandic polish czech slovak hungarian romanian bulgarian greek "
    "turkish russian ukrainian belarusian soviet serbian croatian slovenian bosnian albanian macedonian montenegrin "
    "estonian latvian lithuanian georgian armenian azerbaijani kazakh uzbek iranian persian iraqi israeli jewish "
    "arab arabic syrian lebanese egyptian moroccan algerian tunisian libyan sudanese ethiopian kenyan nigerian "
    "ghanaian african indian pakistani bangladeshi bengali tamil telugu hindi kannada malayalam marathi punjabi urdu "
    "sinhalese nepali chinese japanese korean taiwanese vietnamese thai malaysian malay indonesian filipino "
    "philippine australian canadian mexican cuban brazilian argentine argentinian chilean colombian peruvian "
    "venezuelan bolivian ecuadorian uruguayan paraguayan jamaican haitian dominican puerto trinidadian european asian "
    "latin hispanic roman byzantine ottoman catholic protestant christian muslim islamic buddhist hindu orthodox "
    "anglican lutheran methodist baptist presbyterian jesuit anglo afro euro scots flemish catalan basque galician "
    "norse viking gaelic celtic slavic germanic mongolian tibetan hebrew yiddish afghan saudi kuwaiti yemeni "
    "bavarian prussian venetian florentine sicilian parisian londoner california texan victorian edwardian "
    "elizabethan mediterranean western eastern northern southern central north south east west americans germans "
    "italians russians greeks turks arabs jews christians muslims hindus indians africans europeans canadians "
    "australians mexicans spaniards englishmen romans somali zimbabwean namibian ugandan tanzanian congolese "
    "cambodian burmese singaporean cypriot maltese luxembourgish"
) - {"california", "puerto"}
"""Adjectives of nations, languages, faiths and directions: not entities by themselves."""

_VERBS = (
    "access activate add advise exist classify extract support consume adjust aggregate allow analyze apply ask "
    "assign attach authenticate authorize avoid be become begin bind bring browse build buy call cancel cause change "
    "check choose clean clear click close collect compare compile complete configure confirm connect consider contact "
    "contain continue convert copy create customize debug decide define delete deliver deploy describe detect "
    "determine develop disable discover display do download drag edit enable encrypt ensure enter establish evaluate "
    "examine execute expand explain explore export expose fail fetch fill filter find finish fix follow gain generate "
    "get give go grant handle have help hide identify implement import improve include increase initialize insert "
    "inspect install integrate invite invoke join keep know launch learn leave let limit list load locate log look "
    "make manage map mark match meet migrate minimize modify monitor mount move name navigate need note notify obtain "
    "open optimize order organize override pass paste pay perform pick place plan post prepare press prevent print "
    "proceed process protect prove provide provision publish pull purchase push put read reboot receive record "
    "recover redeem reduce refer register release reload remove rename renew replace report request require reset "
    "resize resolve restart restore restrict retrieve retry return review revoke run save say scale scan schedule "
    "search secure see select send set setup share show sign skip specify start stop store submit subscribe switch "
    "take tell test track train transfer troubleshoot try turn type understand uninstall unzip update upgrade upload "
    "use validate verify view visit wait want watch work write zoom"
).split()


def _third_person(verb: str) -> str:
    if verb.endswith(("s", "sh", "ch", "x", "o")):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if verb.endswith("y") and verb[-2] not in "aeiou" else f"{verb}s"


ACTIONS = frozenset(_VERBS) | {_third_person(verb) for verb in _VERBS}
"""Verbs of instructions: at the start of a sentence or heading they name nothing."""

VAGUE_WORDS = _set(
    "actual already additional advanced alternative appropriate available basic best better bigger brief certain "
    "common complete correct corresponding current custom default desired detailed different easy entire equal "
    "example exact existing extra fast final free frequent full general generic good great helpful high higher "
    "identical important incoming individual initial internal key large larger last latest left less likely little "
    "long longer low lower main major many maximum minimal minimum minor missing multiple native necessary needed "
    "newer next nice non normal old older ongoing optional ordinary particular popular possible potential preferred "
    "previous proper quick random real recent recommended regular related relevant remaining required respective "
    "right selected separate short significant simple single small smaller special specific specified standard "
    "suitable sure top total true typical underlying unique updated useful usual valid valuable various whole wide "
    "wrong following above below yes please thank thanks based using used provided described listed shown given"
)
"""Adjectives and participles that carry little meaning."""

VAGUE_NOUNS = _set(
    "tab tabs drop ability action advantage amount answer approach aspect attribute basics behavior behaviour benefit "
    "button case cases category change choice code column command comment component concept conclusion condition "
    "consideration considerations content contents count default definition description detail details difference "
    "differences document documentation effect element end entry error errors example examples explanation fact faq "
    "faqs feature features feedback field file form format function functions glossary goal guide header help hint "
    "history home idea image info information input instruction instructions introduction issue item items key kind "
    "label lesson level limit limitation limitations limits line link links list location manner matter meaning menu "
    "message method methods name names need news note notes notice number object objective option options order "
    "output outline overview page pages parameter parameters part parts people permission permissions person place "
    "point possibility prerequisite prerequisites problem problems procedure process product products properties "
    "property purpose question questions reason recommendation recommendations reference references related "
    "requirement requirements resource resources response result results return returns review row rows rule rules "
    "sample scenario scenarios screen section sections see set setting settings setup side situation size solution "
    "solutions start status step steps string structure summary support syntax system table task tasks term "
    "terminology terms test thing things time times tip tips title tool tools topic topics troubleshooting tutorial "
    "tutorials type types usage use uses user users value values version versions video warning warnings way ways "
    "window work world abstract acknowledgements appendix caution caveat caveats disclaimer footnote footnotes synopsis"
)
"""Nouns that occur on every page of a manual: alone or after vague words they name nothing."""

HEADING_PARTS = frozenset(
    "appendix chapter contents foreword glossary index overview part preface section table".split()
)
"""Words of headings that name a part of a document, which nobody asks about."""
