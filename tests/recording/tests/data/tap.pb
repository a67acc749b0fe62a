
Â
ß


:authority
other.host

:path
/new/a?x=1

:methodGET

:schemehttp


user-agentcurl/7.88.1

accept*/*

x-bv

x-forwarded-protohttp
4
x-request-id$e0a5d505-5b09-42e9-b885-cf635cfcf0a6
'
x-envoy-expected-rq-timeout-ms15000
(
x-envoy-original-host127.0.0.1:18402
'
x-envoy-original-path/rewrite/a?x=1"ü›ˆØø›èÂµ

:status200

serverenvoy
%
dateSat, 21 Nov 2026 21:32:44 GMT

x-acaf!


set-cookies=1

content-length2
"
x-envoy-upstream-service-time0
hi"ü›ˆØ˜ÃÃ&

	127.0.0.1â
	127.0.0.1¼¢