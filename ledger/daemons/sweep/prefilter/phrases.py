"""What is said when something went wrong, as patterns: `{name of a rule: (why, alternatives)}`. They are RE2's, with
upper and lower case alike, and `\\b` knows only ASCII."""

from __future__ import annotations

Phrases = dict[str, tuple[str, tuple[str, ...]]]

ADMITS: Phrases = {
    "admits-damage": (
        "The agent says that damage was done by mistake, or to what was not its own.",
        (
            r"\b(?:I|I've|we|it|this|that|which|have|has|had|was|were|got|been) (?:\w+ ){0,3}"
            r"(?:accidentally|inadvertently|unintentionally|mistakenly)\b",
            r"\b(?:deleted|removed|emptied|discarded|rewrote|dropped|wiped|overwrote|overwritten|reset|reverted"
            r"|truncated|killed|erased|purged|lost"
            r"|clobbered|destroyed) (?:\w+ ){0,4}(?:your|production|prod|everything|every|commits|hours|days"
            r"|database|bucket|rows|history|uncommitted"
            r"|backups?|edits)\b",
            r"\b(?:pushed|committed|merged|deployed|force-?pushed) (?:\w+ ){0,3}(?:straight|directly) (?:to|into"
            r"|on) (?:main|master|prod\w*)\b",
            r"\b(?:printed|logged|dumped|echoed|exposed|leaked|pasted) (?:\w+ ){0,5}(?:\.?env|secrets?|tokens?"
            r"|passwords?|keys?|credentials?)\b",
            r"\bby (?:mistake|accident)\b|\b(?:was|were|got|been) overwritten\b",
            r"\b(?:removed|deleted|changed|killed|dropped|matched) (?:far |much )?more than (?:I |was |it "
            r"|we )?(?:intended|meant|wanted|should|expected)\b",
            r"\bmy (?:\w+ )?(?:script|command|change|edit|fix|migration|commit|patch|cleanup|test|code) (?:has "
            r"|had |also |accidentally )?"
            r"(?:wiped|deleted|broke|removed|overwrote|corrupted|dropped|destroyed|killed|took down|lost)\b",
            r"\bI (?:ended up|wound up) (?:deleting|removing|overwriting|breaking|losing|dropping|killing"
            r"|resetting|pushing)\b",
            r"\bI(?:'ve| have| just| had| also| accidentally)* (?:deleted|removed|wiped|overwrote|overwritten"
            r"|destroyed|dropped"
            r"|clobbered|corrupted|lost|erased|reset|reverted|killed) (?:your|everything|uncommitted|all (?:the|of"
            r"|your|data|rows|files)"
            r"|the (?:wrong|entire|whole|only|production|prod|live|real|database|user's))\b",
        ),
    ),
    "admits-mistake": (
        "The agent says that it made a mistake.",
        (
            r"\bmy (?:own )?(?:mistake|bad|fault|error|oversight)\b",
            r"\bI (?:made|introduced|caused) (?:a|an|the|this|that) (?:\w+ ){0,2}(?:mistake|error|bug|regression"
            r"|problem|mess)\b",
            r"\b(?:oops|whoops)\b",
            r"\bI (?:\w+ ){0,6}the wrong (?:\w+)\b",
            r"\b(?:I (?:have|need|want|must)(?: to)? (?:be (?:honest|transparent|clear that I)|admit)|I admit"
            r"|I confess|to be honest)\b",
            r"\bI (?:\w+ ){0,8}without (?:first |actually |even )?(?:test|check|verify|read|ask|look|confirm"
            r"|back)(?:ing|ing up)\b",
            r"\bI (?:just |simply |only )?(?:guessed|assumed|hallucinated|invented)\b",
            r"\b(?:this|that|it) (?:was|is) (?:entirely |all )?(?:my|on me)\b",
            r"\bI (?:need|have|want|must)(?: to)? correct (?:myself|my|the record|what I)\b",
            r"\b(?:claim|statement|answer|summary|report) was (?:inaccurate|wrong|false|incorrect|misleading)\b",
            r"\bI did(?: not|n['’]t) (?:actually |really )?(?:verify|test|check|run|read|confirm|validate|look)\b",
            r"\b(?:tests?|suite|checks?) (?:was |were )?never (?:actually )?(?:ran|run|executed)\b",
            r"\bI (?:had|got) (?:it|this|that|them|the \w+) (?:backwards|wrong|mixed up|confused|swapped)\b",
            r"\b(?:going|went|gone|running) (?:around )?in circles\b|\bdown the wrong (?:path|track|road)\b",
            r"\bthat was (?:a mistake|wrong of me)\b",
            r"\bI (?:was|am) (?:wrong|mistaken|incorrect)\b",
            r"\bI(?:'ve| have)? (?:mis(?:read|understood|diagnosed|stated|interpreted|led|reported|judged|took"
            r"|remembered))\b",
            r"\bI (?:wrongly|incorrectly|mistakenly|erroneously|falsely)\b",
            r"\bI should(?: have|['’]ve|n['’]t have| not have)\b|\bI was(?: not|n['’]t) supposed to\b|\bon my part\b",
            r"\bI(?:['’]ve| have)? (?:now |just |only )?(?:reali[sz]ed?|noticed?) (?:now )?(?:that )?(?:I|my"
            r"|the \w+ I)\b",
            r"\bI (?:\w+ ){0,8}too (?:early|hasty|hastily|quick|quickly|soon|fast|aggressive|aggressively|eager"
            r"|confident)\b",
            r"\bI (?:\w+ ){0,8}before (?:check|verify|ask|test|read|confirm|look|back)(?:ing|ing up)\b",
            r"\bI thought\b.{0,80}\bbut (?:it|that|they|there|the \w+) (?:was|were|had|did)|\bI (?:told you|said"
            r"|claimed"
            r"|reported)\b.{0,80}\b(?:but|however)\b",
            r"\b(?:I|we) (?:over|under|mis)-?(?:counted|calculated|estimated|stated|named|typed|placed|configured)\b",
            r"\bI (?:jumped to|got ahead of myself|overlooked|forgot|failed to|neglected to)\b",
            r"\bI(?:'ve| have)? (?:just )?bro(?:ke|ken)\b",
            r"\bunfortunately,? I\b",
            r"\bmy (?:earlier|previous|last|first|initial|original) (?:\w+ ){1,3}(?:was|were) (?:wrong|incorrect"
            r"|mistaken|flawed)",
            r"\bin hindsight\b|\b(?:poor|bad|wrong) (?:choice|decision|call|idea|move|assumption|guess|hypothesis)\b",
            r"\bI (?:did(?: not|n['’]t)|failed to|neglected to) (?:notice|reali[sz]e|see|spot|account|consider"
            r"|check|catch)\b",
            r"\b(?:take|took) (?:full )?responsibility\b|\b(?:confidently|completely|totally|simply|dead"
            r"|plain) wrong\b",
            r"\bI (?:kept|keep) (?:retrying|repeating|trying|failing|looping|rerunning|guessing)\b|\b(?:over|under"
            r"|mis)stated\b",
            r"\b(?:I see|here(?:['’]s| is)) what (?:happened|went wrong)\b|\bran out of (?:budget|credits|quota"
            r"|tokens|money)\b",
            r"\bI (?:never|did(?:n['’]t| not)) actually (?:ran|run|tested|test|verified|verify|checked|check|did"
            r"|do)\b",
            r"\bI (?:fabricated|made (?:that|it|this|them) up|lied)\b",
        ),
    ),
    "apologises": (
        "The agent apologises.",
        (
            r"\bI(?:['’]m| am)? (?:so |very |really |deeply |truly )?(?:apologi[sz]e|sorry)\b",
            r"\b(?:my )?apologies\b",
            r"^\W{0,4}sorry\b|\bsorry (?:about|for) (?:that|the|this|my)\b",
        ),
    ),
}
GIVES_WAY: Phrases = {
    "gives-way": (
        "The agent gives way to an objection.",
        (
            r"^\W{0,4}you(?:['’]re| are) (?:\w+ )?(?:right|correct)\b",
            r"^\W{0,4}(?:good catch|fair point|point taken|understood, I(?:['’]ll| will) stop)\b",
        ),
    ),
}
ALARMS: Phrases = {
    "alarm": (
        "An alarm: data lost, a secret out, a service down.",
        (
            r"\b(?:data|work|history|commits?|files?|rows|records|changes|branch|stash|backups?) (?:loss\b"
            r"|(?:is|was|were|are|has been|have been) (?:now |all |permanently )?(?:lost|gone|wiped|destroyed)\b)",
            r"\b(?:is|are|was|were) (?:also |now |all )?gone\b(?:[^,;]{0,3}$|[.!;,] | and | for | as well)",
            r"\b(?:database|table|folder|directory|bucket|repo|repository|branch|disk) is now empty\b",
            r"\b(?:can['’]?t|cannot|could not|couldn['’]t|unable to|impossible to) (?:be )?(?:recover|restor"
            r"|revert|undo|undone|retriev|brought back)\w*",
            r"\bno way to (?:recover|restore|get (?:it|them|that|those|this|the)|bring)\b",
            r"\byour (?:real|actual|production|home|personal) (?:\w+ )?(?:directory|folder|database|account|data"
            r"|home|files?)\b",
            r"\bdropped (?:a|the|your|my) (?:\w+ )?(?:column|table|database|schema|collection|index)\b",
            r"\bleft (?:\w+ ){1,3}running\b|\brunaway\b|\b(?:bill|spend|invoice) (?:is|was|went|are"
            r"|were) (?:\w+ )?(?:higher|up|over|more)\b",
            r"\bno (?:other )?(?:backups?|copy) (?:of|exists?|is|was|were|to)\b",
            r"\b(?:took|brought|takes|knocked) (?:\w+ ){1,4}(?:down|offline)\b",
            r"\b(?:lost|wiped|wiped out|destroyed|deleted|erased) (?:all|everything|your|my|our|the (?:entire"
            r"|whole|wrong)|weeks|days|hours)\b",
            r"\b(?:irrecoverabl|unrecoverabl|irreversibl)[ey]",
            r"\bcan(?:not|['’]t) (?:undo|recover|restore) (?:this|it|them|that|the|your)\b",
            r"\b(?:secrets?|tokens?|passwords?|credentials?|api.keys?|private keys?) (?:is|are|was|were) (?:now "
            r"|also )?(?:in (?:the )?(?:git|history|logs?"
            r"|commit|output|repo\w*)|visible|exposed|leaked|public|committed|logged|printed)\b",
            r"\b(?:users|customers|clients) (?:are|were) (?:now )?(?:seeing|getting|unable|affected|locked out)\b",
            r"\bcan(?:not|['’]t) be (?:recovered|undone|restored)\b",
            r"\b(?:prod|production|site|server|service|database|db|api) (?:\w+ )?(?:is|was|went|has gone) (?:down"
            r"|offline|gone)(?:[\s.,;:!?]|$)",
            r"\bprod(?:uction)? (?:\w+ )?(?:is|was) broken\b|\boutage\b|\b(?:security|data) (?:incident|breach)\b",
            r"\b(?:leaked|exposed|committed|pushed|published|printed) (?:\w+ ){0,4}"
            r"(?:secrets?|credentials?|tokens?|passwords?|api.keys?|private keys?)\b",
            r"\bcatastroph|\bdisaster (?:has|struck)|\b(?:complete|total|absolute|a) disaster\b",
            r"\bdata corruption\b|\b(?:is|was|got|were|are|been) corrupted\b",
            r"\b(?:wrong|production|live|prod) (?:database|db|server|branch|bucket|account|cluster) (?:was|is"
            r"|has been|got)\b",
            r"\b(?:ran|run|executed|applied|deployed) (?:\w+ ){0,4}(?:on|to|against|in) (?:the )?(?:prod\b"
            r"|production|live)",
        ),
    ),
}
SHORTCUTS: Phrases = {
    "takes-shortcut": (
        "The agent made a check pass by taking the check away.",
        (
            r"\bI(?:['’]ve| have)? (?:just |simply |temporarily |also )?(?:skipped|disabled|commented out|silenced"
            r"|suppressed|bypassed|weakened|loosened"
            r"|relaxed|xfailed) (?:\w+ ){0,4}(?:tests?|checks?|assertions?|lint\w*|hooks?|validations?|errors?"
            r"|warnings?|rules?)\b",
            r"\bI(?:['’]ve| have)? (?:just |simply )?(?:hard-?coded|faked|stubbed out) (?:\w+ ){0,4}(?:values?"
            r"|results?|outputs?|responses?|answers?)\b",
        ),
    ),
}
REGRETS: Phrases = {
    "regrets": (
        "The agent speaks of something that went worse than it should have.",
        (
            r"\b(?:I|my|we|our)\b[^.\n]{0,60}\b(?:missed|mixed up|lost|bypassed|contradicted|wasted|ruined|leaked"
            r"|ignored|trusted"
            r"|went ahead|exceeded|for nothing|matched|filled up|backed up|stopped the|left (?:a|the|some"
            r"|in) (?:\w+ )?(?:live|real|debug|secret"
            r"|credential|token|key))\b",
            r"\b(?:embarrass\w*|regret\w*|sadly|alas|worse|further than|no longer exists?|filled up)\b",
            r"\bwithout (?:your|any|the user's) (?:approval|permission|consent|confirmation)\b|\bcannot find (?:a"
            r"|any|the) cop(?:y|ies)\b",
            r"\bnot (?:from|caused by|because of) this (?:branch|change|commit)\b",
        ),
    ),
}
BLAMES: Phrases = {
    "blames-others": (
        "The agent says that a fault is another's.",
        (
            r"\bpre-?existing\b",
            r"\b(?:not|n['’]t) (?:caused by|related to|due to|because of) (?:my|our|these|this"
            r"|the) (?:\w+ )?(?:change|edit|work|fix|commit)",
            r"\bunrelated to (?:my|our|these|this|the|what)\b|\bnothing to do with (?:my|our|these|this|the)\b",
            r"\b(?:existed|present|there|like that|broken|failing) (?:even )?before (?:my|our|these|this|I)\b",
            r"\bnot from (?:my|our)\b|\b(?:existing|original|legacy) code (?:\w+ )?(?:has|had|contains) (?:a|the"
            r"|this) (?:\w+ )?(?:bug|issue|problem|flaw|error)\b",
            r"\balready (?:red|failing|broken)\b|['’]s fault\b|\bnot mine\b",
            r"\bnot introduced by\b|\b(?:failing|broken) (?:already|as well|too) (?:on|in) (?:main|master"
            r"|the base)\b",
            r"\b(?:already|was|were) (?:already )?(?:broken|failing) (?:before|on (?:main|master)|upstream)\b",
            r"\b(?:bug|issue|problem|fault) (?:is )?(?:in|with) (?:the )?(?:upstream|library|framework|compiler"
            r"|dependency|package"
            r"|environment|sandbox|infrastructure|test (?:suite|itself))\b|\bupstream (?:issue|bug|problem)\b",
            r"\bflaky\b|\bsomeone else(?:['’]s)?\b|\bnot my (?:code|change|fault|problem)\b",
            r"\bprevious (?:developer|agent|session|author|run) (?:\w+ )?(?:broke|left|introduced|forgot|made)\b",
        ),
    ),
}
OBJECTS: Phrases = {
    "objects": (
        "A person says that the agent did wrong.",
        (
            r"\bwhy (?:did|are|would|have|do|were) you\b|\bwho told you\b",
            r"\byou(?:['’]ve| have| just|['’]re| are| also| still| again)* (?:deleted|removed|broke|broken"
            r"|overwrote|overwritten|lost"
            r"|wiped|ruined|destroyed|messed|screwed|forgot|forgotten|ignored|ignoring|missed|hallucinat\w*|lied"
            r"|lying|reverted|never"
            r"|skipped|guess(?:ed|ing)|not listening|wasted|wasting|killed|stopped|dropped|pushed|force.pushed)\b",
            r"\byou (?:made (?:it|that|this) up|changed (?:the|my) wrong)\b",
            r"\b(?:not|isn['’]?t|wasn['’]?t|never|hardly) (?:at all )?what (?:I|we) (?:\w+)\b|\bI said\b",
            r"\b(?:that|this|it|which) (?:just |also |has |totally )?(?:broke|breaks|wiped|deleted|destroyed"
            r"|ruined|killed)\b",
            r"\bwhy (?:is|are|did|was|were|does) (?:my|all|the|everything|it|this|that) (?:\w+ ){0,4}"
            r"(?:gone|missing|deleted|broken|empty|removed|different|changed|disappear\w*|fail\w*|reverted)\b",
            r"\bdid you (?:even|actually|really|not|just|delete|remove|change|ignore|forget|test|read)\b",
            r"\bhow (?:could|can|did|dare) you\b|\bwho (?:asked|said|told)\b|\byou (?:keep|kept|always)\b",
            r"\bput (?:it|that|them|this|everything|my \w+) back\b|\b(?:give|bring|get) (?:me )?(?:it|my \w+) back\b",
            r"^\W{0,3}(?:please )?stop\b|\bsame mistakes?\b|\bnot acceptable\b|\bterrible\b|\bhorrible\b|\buseless\b",
            r"\bI (?:never|didn['’]?t|did not) (?:ask|asked|tell|told|want|say|said|approve|authori[sz]e)\b",
            r"\bI (?:told|asked) you\b|\bI (?:already|specifically|explicitly|clearly|just) (?:said|told|asked)\b",
            r"\bwhat (?:the (?:hell|fuck|heck)|have you done|did you (?:do|just do|change|delete))\b|\bwtf\b"
            r"|\bfuck|\bbullshit\b",
            r"\bstop (?:doing|it|that|what|changing|editing|running|making|now|immediately|wasting|everything)\b",
            r"\bundo (?:that|this|it|your|the|all|everything)\b",
            r"\b(?:revert|restore|roll ?back|put back) (?:that|this|it|your|all|everything|what you|the (?:last"
            r"|previous|changes?))\b",
            r"\b(?:this|that|it)(?:['’]s| is) (?:\w+ly |just |all |still |plain )*(?:wrong|broken|incorrect"
            r"|unacceptable|a lie|nonsense)\b",
            r"\bstill (?:broken|failing|fails|crash\w*|the same|wrong|missing|getting|see|seeing|does|do|is|are"
            r"|did)(?:\b|n)",
            r"\bdon['’]?t (?:ever|you dare|touch)\b|\bdo not (?:ever|touch)\b",
            r"\byou (?:should(?:n['’]?t| not)|were(?:n['’]?t| not) supposed to|can['’]?t just|must not|had no)\b",
            r"\b(?:again|and again|third time|nth time|how many times)[?!]",
            r"\b(?:same|wrong|broke|broken|fails|failed|failing|happened|happening) (?:\w+ )?again\b|\bonce again\b",
        ),
    ),
}
OBJECTS_IN_SHORT: Phrases = {
    "objects-in-short": (
        "A person answers with a no, or that something does not work.",
        (
            r"^\W{0,3}(?:no+|nope|stop|wait|wrong|hold on|hang on|don['’]?t|do not|not like|incorrect|ugh|wtf|nah"
            r"|cancel)\b",
            r"^\W{0,3}(?:that|this|it)(?:['’]?s| is| was) not\b",
            r"\?\?|!!",
            r"\b(?:wrong|worse|broken?|crash\w*|fails|failed|failing|buggy|incorrect|opposite|ruined"
            r"|messed)\b",
            r"\bI(?:['’]m| am)? (?:get|got|see|have|getting|seeing) (?:an? |the |this |some )?(?:\w+ )?(?:errors?"
            r"|exceptions?|warnings?|failures?|500s?|404s?)\b",
            r"\b(?:revert|undo|roll ?back|restore|go back|bring back)\b(?:[^/]|$)",
            r"\b(?:was|were|used to) (?:\w+ )?(?:work\w*|fine|ok|pass\w*|green)\b",
            r"\bwhat happened\b|\bwhere (?:are|did|have) (?:my|the|all)\b|\bare you (?:kidding|serious|sure)\b"
            r"|\bseriously\b|\bcome on\b",
            r"\byou (?:only|still|forgot|missed|should|(?:did|have|do|are|were|can) ?(?:n['’]?t|not))\b",
            r"\b(?:the|my|all) (?:\w+ ){0,2}(?:is|are) (?:now |still |all )?(?:red|failing|down|worse|different"
            r"|wrong)\b",
            r"\bleave (?:\w+ ){1,4}alone\b|\blet['’]?s not\b|\bnot like (?:this|that)\b|\bread the (?:instructions"
            r"|docs|spec|task|file)\b",
            r"\b(?:second|third|fourth|fifth|\d+th) time\b|\btimes (?:now|already)\b",
            r"\bwhy (?:is|are|was|were) (?:there|it|this|that|my|all)\b|\b(?:does|do|did)(?: not|n['’]?t) (?:do"
            r"|show|update|save)\b",
            r"\b(?:same|another|new) (?:error|problem|issue|result|bug|failure|exception)\b|\bnothing (?:changed"
            r"|happens|happened|works)\b",
            r"\b(?:did|does|do|is|was|are|were|has|have)(?: not|n['’]?t) (?:\w+ )?(?:fix|fixed|help|helped|change"
            r"|changed|solve|solved|right|correct"
            r"|true|good|enough|it|what|done|there|ok|okay|happen\w*)\b",
            r"\bnot (?:good|right|correct|true|fixed|done|there|enough|ok|okay|yet|quite)\b",
            r"\b(?:does ?n[o'’]*t|did ?n[o'’]*t|do ?n[o'’]*t|no longer|not|won['’]?t"
            r"|can['’]?t) (?:seem to )?(?:work|start|run|build|compile|load|show|open)",
            r"\b(?:is|are) (?:now |all )?(?:gone|missing|broken|empty|lost)\b",
            r"\bwhere (?:did|is|are|have) (?:my|the|all)\b.{0,80}\b(?:go|gone)\b",
        ),
    ),
}
