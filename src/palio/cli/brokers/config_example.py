"""A settings file that explains itself. What it says about defaults is checked by the tests."""

from __future__ import annotations

EXAMPLE = """\
# The settings of a broker, for `palio up --config palio.toml`; a palio.toml in the current folder is found by
# itself. All are shown with their defaults: take away the # of what you want to change.
# Environment variables override this file (PALIO_LISTEN, PALIO_SYNC …), and the flags of `palio up` both.

# The broker's name in its network, the same for ever: durable subscriptions refer to it.
# By default it is made of the machine's name and the port, and kept in the data folder.
#name = "siena"

# Where clients and other brokers connect. 127.0.0.1 is this machine only; 0.0.0.0:7070 is open to everyone.
#listen = "127.0.0.1:7070"

# HTTP: events, subscriptions, WebSocket, health and metrics (/docs lists all); "off" for none.
#http = "127.0.0.1:7080"

# Beside TCP, a UDP port for quic://, which may have the same number as that of listen; "off" for none. It needs
# the certificate of [security], and the extra quic: pip install 'palio[quic]'.
#quic = "off"

# What is kept is kept in this folder; the journal can be elsewhere: postgresql://user@host/database
#data = "palio-data"
#store = ""

# Without a journal nothing is durable, and a confirmed event is one that was taken.
#journal = true

# A relay keeps nothing, either, in a network whose other brokers have journals: it passes on what they keep.
#relay = false

# Seconds for which what was published is kept at least, for replays, backtests and subscriptions that reach
# back; longer, if a durable subscription has not read it yet.
#keep = 604800.0

# The folder to which `palio spark archive` brings the journal. What was trimmed is read there: subscriptions
# that reach back, replays and backtests begin where the lake begins. Needs pyarrow: pip install 'palio[arrow]'.
#lake = ""

# When a confirmed event is on disk. full: before it is confirmed. normal: it survives the end of the broker,
# not always that of the machine. off: the system decides.
#sync = "full"

# What neighbours are told of: covering, merging, identity, simple, or flooding (nothing; events go everywhere).
# merging_excess is the share of a merged filter that nobody asked for. advertisements: only what was advertised
# may be published. Both ends of a link must agree about flooding and advertisements.
#strategy = "covering"
#merging_excess = 0.0
#advertisements = false

# A file of `palio spark stats --hints`: how frequent values are, so that the index need not find out first.
#hints = ""

# Seconds of silence after which a neighbour or client is asked whether it is still there.
#heartbeat = 5.0

# Events for a client that does not read fast enough: drop-newest, drop-oldest, or disconnect.
#when_slow = "drop-newest"

# debug, info, warning or error; text or json.
#log_level = "info"
#log_format = "text"

# Brokers to link with. kind is what the other one is to this one: peer (an equal, without cycles), master (one
# level up), below (one level down), or graph (an equal, and cycles are welcome). palios://host:port speaks TLS.
# token_file and authority are for this link only, if they are not those of [security]. export is a filter: only
# what it selects leaves by this link, to a broker of another domain.
#[[peers]]
#address = "127.0.0.1:7171"
#kind = "peer"
#cost = 1.0
#token_file = ""
#authority = ""
#export = "true"
#dialect = "palio"

# How brokers find their links by themselves (docs/overlay.md). kind: fixed, tree, mesh, or auto (a tree where
# there is somebody to join). name: of the network; brokers of others are no neighbours. join: addresses of
# brokers of the network, dns://NAME:PORT for all at a name. degree: neighbours that a broker of a tree should
# have at the most. links: neighbours that one of a mesh looks for. look_every, ask_within: seconds between two
# looks for other parts of the network, at the most, and for an answer. networks: addresses that others tell
# are dialled in these alone. address: where others reach this broker. events: whether changes are events that
# can be subscribed to: on, off, or auto (where brokers find their links by themselves).
#[overlay]
#kind = "auto"
#name = ""
#join = []
#degree = 8
#links = 3
#look_every = 30.0
#ask_within = 5.0
#networks = ["127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"]
#address = ""
#events = "auto"

# What becomes of what a neighbour wants when the link to it is lost (docs/reconfiguration.md). protocol:
# strawman (it is dropped at once), deferred (it is parked for so many seconds: defer), notified (until the link
# that takes the place of the lost one is in use; defer is the longest), informed (the new link is not told what
# only its other end has wanted; without a journal alone; after so many seconds it is: hold_back).
#[reconfiguration]
#protocol = "notified"
#defer = 3.0  # or "auto": twice as long as the slowest of the last repairs
#hold_back = 5.0

# What nobody may exceed: bytes of a frame; connections, in all, of one machine and of one principal;
# subscriptions of one client; attributes of an event; characters of a filter; events that a client may publish
# in a second (0: any number); bytes that wait for a slow client, for a neighbour, and for the disk; seconds
# until a new connection must have said who it is.
#[limits]
#frame = 16777216
#connections = 10000
#connections_per_address = 10000
#connections_per_principal = 10000
#subscriptions = 200000
#attributes = 1024
#filter = 262144
#publish_rate = 0.0
#outgoing = 16777216
#link = 268435456
#unwritten = 67108864
#greeting = 10.0

# Who may come in. With authentication, by a token (`palio token create`) or a certificate; what they may do is
# in the folder (`palio rights set`), by default "access" in the data folder. when_wider: a subscription for
# more than one may see is narrowed, or refused (refuse). With a certificate (PEM files), the ports speak TLS;
# the authority signs the certificates of clients and neighbours. token_file has the token that this broker
# shows its neighbours. insecure: listen beyond this machine without authentication.
#[security]
#authentication = false
#folder = ""
#when_wider = "narrow"
#insecure = false
#certificate = ""
#key = ""
#authority = ""
#token_file = ""

# The operation log: all requests, those that may change something (changes), those that were refused, or off;
# for how many seconds, counted back from the newest row, and how many bytes at the most (`palio audit`).
#[operations]
#level = "all"
#keep = 2592000.0
#size = 1073741824

# Durable delivery, in seconds: how long the ids of published events are remembered; when a durable subscription
# that nobody takes from any more is given up, and when a broker that is away is forgotten (0: never).
#[durable]
#retention = 3600.0
#abandon_after = 2592000.0
#forget_after = 0.0

# XML documents (palio[xml]): how many are read at the same time, for each of which up to 128 MiB are needed,
# and bytes of one. keep: of all brokers, the current documents that this filter selects,
# such as 'xml.family = "card"'.
#[documents]
#workers = 2
#size = 1048576
#keep = ""
#dialect = "palio"
# What documents go through before they are read, in this order, as installed packages bring it (palio.stages);
# and bytes that may wait for those of them for which publishers do not (waits = false).
#stages = []
#queue = 67108864

# HTTP beyond health and metrics: bytes of one request, of all that are in memory, of one from which on it lies
# in a file while it comes, and of all such files; seconds until it must have come, between signs of life on an
# event stream, and until a reader that takes nothing is cut off.
# origins: web pages of other places that may call. hosts: more names of a broker that is for this machine only.
# sinks: networks that are not public and in which webhooks may be, such as 10.0.0.0/8. A webhook has to agree
# before it is sent anything (validate_sinks); push_…: requests that are out to one at a time, seconds until it
# must have answered, how often it is tried, and seconds between two attempts, doubling from first to longest.
#[gateway]
#body = 8388608
#bodies = 67108864
#body_in_memory = 262144
#bodies_in_files = 1073741824
#body_within = 30.0
#keep_alive = 15.0
#stalled = 60.0
#origins = []
#hosts = []
#subscriptions = 1000
#sinks = []
#validate_sinks = true
#push_in_flight = 8
#push_within = 10.0
#push_attempts = 12
#push_first_pause = 1.0
#push_longest_pause = 300.0

# SOAP on the HTTP port: WS-Notification, and ONVIF's event service. It needs lxml (`palio[xml]`).
#[soap]
#enabled = false
"""
