"""The shapes that vendors give their tokens, as data: a name, and what its tokens look like.

They follow what the vendors document, and what gitleaks' rules and detect-secrets' plugins look for. A shape begins
behind a character that is no letter or digit, and all its characters, 15 at least, are of those that `RUN` names; but
for the few in `ELSEWHERE`. Uppermost lengths are left open where a longer one is the same token.
"""

from __future__ import annotations

REDACTED = "[REDACTED]"
RUN = r"[A-Za-z0-9_.~+/=-]{15,}+"

SHAPES: tuple[tuple[str, str], ...] = (
    # where code lies
    ("github", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    ("github", r"github_pat_[A-Za-z0-9_]{22,}"),
    ("gitlab", r"gl(?:pat|dt|rt|rtr|ptt|ft|soat|cbt|imt|agent|ffct|oas)-[A-Za-z0-9_.-]{20,}"),
    ("gitlab", r"GR1348941[A-Za-z0-9_-]{20,}"),
    ("atlassian", r"AT(?:ATT|CTT)3[A-Za-z0-9_=-]{20,}"),
    ("bitbucket", r"ATBB[A-Za-z0-9]{32}"),
    ("sourcegraph", r"sgp_(?:[a-f0-9]{16}_|local_)?[a-f0-9]{40}"),
    ("linear", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    # clouds
    ("aws", r"A[KSBC][IC]A[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("google", r"AIza[A-Za-z0-9_-]{35,}"),
    ("google", r"ya29\.[A-Za-z0-9_-]{20,}"),
    ("google", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    ("digitalocean", r"do[opr]_v1_[a-f0-9]{64}"),
    ("alibaba", r"LTAI[A-Za-z0-9]{20}"),
    ("cloudflare", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}"),
    ("fly", r"f(?:o1|m1r|m1a|m2)_[A-Za-z0-9+/=_-]{40,}"),
    ("heroku", r"HRKU-AA[A-Za-z0-9_-]{50,}"),
    ("netlify", r"nfp_[A-Za-z0-9]{36,}"),
    ("hashicorp", r"[a-zA-Z0-9]{14}\.atlasv1\.[A-Za-z0-9=_-]{60,}"),
    ("vault", r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    ("pulumi", r"pul-[a-f0-9]{40}"),
    ("doppler", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9.]{40,}"),
    ("tailscale", r"tskey-(?:auth|api|client|webhook|scim)-[A-Za-z0-9-]{16,}"),
    ("dynatrace", r"dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("onepassword", r"ops_eyJ[A-Za-z0-9+/=_-]{100,}"),
    # models
    ("openai", r"sk-(?:ant|proj|svcacct|admin|or|lf|None)-[A-Za-z0-9_-]{16,}"),
    ("openai", r"sk-[A-Za-z0-9]{20,}"),
    ("groq", r"gsk_[A-Za-z0-9]{40,}"),
    ("xai", r"xai-[A-Za-z0-9]{60,}"),
    ("perplexity", r"pplx-[A-Za-z0-9]{40,}"),
    ("huggingface", r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    ("replicate", r"r8_[A-Za-z0-9]{37,}"),
    ("nvidia", r"nvapi-[A-Za-z0-9_-]{60,}"),
    ("langsmith", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    ("pinecone", r"pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{50,}"),
    ("tavily", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{28,}"),
    # messages
    ("slack", r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}"),
    ("slack", r"xapp-[A-Za-z0-9-]{10,}"),
    ("discord", r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"),
    ("twilio", r"SK[a-f0-9]{32}(?![A-Za-z0-9])"),
    ("sendgrid", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("mailgun", r"key-[a-f0-9]{32}(?![A-Za-z0-9])"),
    ("mailchimp", r"[a-f0-9]{32}-us[0-9]{1,2}(?![A-Za-z0-9])"),
    ("brevo", r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    # money and shops
    ("stripe", r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{16,}"),
    ("stripe", r"whsec_[A-Za-z0-9+/=]{20,}"),
    ("shopify", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ("square", r"sq0(?:csp|atp|idp)-[A-Za-z0-9_-]{22,}"),
    # packages
    ("npm", r"npm_[A-Za-z0-9]{36}"),
    ("pypi", r"pypi-[A-Za-z0-9_-]{50,}"),
    ("rubygems", r"rubygems_[a-f0-9]{48}"),
    ("docker", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    ("artifactory", r"AKCp[A-Za-z0-9]{60,}"),
    ("clojars", r"CLOJARS_[a-z0-9]{60}"),
    # data and watching
    ("databricks", r"dapi[a-f0-9]{32}(?:-[0-9])?"),
    ("planetscale", r"pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_.=-]{32,}"),
    ("supabase", r"(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,})"),
    ("airtable", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    ("notion", r"ntn_[A-Za-z0-9]{40,}"),
    ("figma", r"fig[dou]_[A-Za-z0-9_-]{20,}"),
    ("postman", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    ("grafana", r"glsa_[A-Za-z0-9_]{32,}"),
    ("grafana", r"glc_eyJ[A-Za-z0-9+/=]{40,}"),
    ("newrelic", r"NR(?:AK|RA)-[A-Z0-9]{27}"),
    ("sentry", r"sntry[su]_[A-Za-z0-9+/=_-]{40,}"),
    ("age", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    ("ledgerd", r"ld_(?:owner|reader|saddle)_[A-Za-z0-9_-]{30,}"),
    ("azure", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
)

# Not behind a boundary, or with other characters in them; and what they begin with
ELSEWHERE: tuple[tuple[str, str, str], ...] = (
    ("telegram", ":", r"(?<=[0-9]{8}):[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    ("slack", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}"),
    ("discord", "discord", r"discord(?:app)?\.com/api/webhooks/[0-9]{15,22}/[A-Za-z0-9_-]{50,}"),
)

JWT = r"eyJ[A-Za-z0-9_-]{8,4000}+\.[A-Za-z0-9_-]{4,16000}+\.[A-Za-z0-9_-]{0,4000}+"

# What a private key in PEM becomes in base64, as a Kubernetes secret or a kubeconfig holds it
PEM_IN_BASE64 = (
    r"LS0tLS1CRUdJTi(?:BQUklWQVRFIEtFW|BSU0EgUFJJVkFURSBL|BFQyBQUklWQVRFIEtFW|BEU0EgUFJJVkFURSBL"
    r"|BPUEVOU1NIIFBSSVZBVEUg|BFTkNSWVBURUQgUFJJVkFURSBL|BQR1AgUFJJVkFURSBL)[A-Za-z0-9+/=]{16,}"
)

KEY_BEGINS = r"-{4,5} ?BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
KEY_ENDS = KEY_BEGINS.replace("BEGIN", "END")
PUTTY_BEGINS = r"Private-Lines: ?[0-9]{1,3}"
PUTTY_ENDS = r"Private-MAC: ?[0-9a-f]{40,64}"
