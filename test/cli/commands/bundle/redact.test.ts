import test from 'ava';
import fc from 'fast-check';
import { redactText } from '../../../../cli/commands/bundle/redact-text.ts';
import { CNI_CONF_NAMES, pickAllowed, redactValue } from '../../../../cli/commands/bundle/redact-value.ts';
import { assertLaw } from '../../../support/law.ts';

const PEM = '-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIU\nshort\n-----END CERTIFICATE-----';

const SECRETS: Readonly<Record<string, readonly [text: string, secret: string]>> = {
  'a JSON field': ['{"password":"hunter2","x":1}', 'hunter2'],
  'a JSON field with blanks': ['{ "bearerToken" : "a b, c" }', 'b, c'],
  'JSON within JSON': ['{"msg":"{\\"token\\":\\"hunter2\\"}"}', 'hunter2'],
  'a list': ['{"tokens": ["hunter1", "hunter2"], "x": 1}', 'hunter2'],
  'an object': ['credentials: {user: me, pin: hunter2}', 'hunter2'],
  'a YAML field': ['client-key-data: aHVudGVyMg==\nserver: https://10.0.0.1', 'aHVudGVyMg=='],
  'a YAML block': ['users:\n- password: |\n    hunter2\n    second\n  name: x', 'second'],
  'an environment variable': ['env: TENCENTCLOUD_SECRET_ID=hunter2 PATH=/bin', 'hunter2'],
  'an environment variable of ours': ['TENCENTCLOUD_REGIONX=hunter2', 'hunter2'],
  'a shell line': ["export MY_PASSWD='two words'", 'two words'],
  'a flag with a value after it': ['agent --api-token hunter2 --socket /run/x', 'hunter2'],
  'a flag with an equals sign': ['agent --secret-key=hunter2', 'hunter2'],
  'a header': ['Authorization: Bearer hunter2.abc', 'hunter2'],
  'a header of the cloud': [
    'authorization: TC3-HMAC-SHA256 Credential=hunter1/x/y, SignedHeaders=host, Signature=hunter2',
    'hunter2',
  ],
  'a bearer alone': ['curl -H "Bearer hunter2"', 'hunter2'],
  'a URL': ['https://admin:hunter2@10.0.0.1/x', 'hunter2'],
  'a user in a URL': ['https://hunter2@10.0.0.1/x', 'hunter2'],
  'a PEM block': [`cert:\n${PEM}\nnext`, 'MIIBszCCAVmgAwIBAgIU'],
  'the short last line of a PEM block': [PEM, 'short'],
  'a PEM block that was cut': [PEM.slice(0, 60), 'MIIBszCC'],
  'a web token': ['got eyJhbGciOi.eyJzdWIi.c2ln from it', 'eyJzdWIi'],
  'a key id of the cloud': ['id AKIDz8krbsJ5yKBZ used', 'AKIDz8krbsJ5yKBZ'],
  'a bootstrap token': ['join with abcdef.0123456789abcdef', '0123456789abcdef'],
  'a long random word': ['blob Zm9vYmFyMTIzNDU2Nzg5MFFXRVJUWQ==', 'Zm9vYmFyMTIzNDU2Nzg5MFFXRVJUWQ'],
  'a variable in a CNI configuration': ['{"env":[{"name":"DB_PASSWORD","value":"hunter2"}]}', 'hunter2'],
  'a variable in YAML': ['env:\n- name: DB_PASSWORD\n  value: hunter2\n', 'hunter2'],
  'a variable in JSON within JSON': ['{"a":"{\\"name\\":\\"API_TOKEN\\",\\"value\\":\\"hunter2\\"}"}', 'hunter2'],
  'a registry’s credentials': ['{"auths":{"r.io":{"auth":"aHVudGVyMg=="}}}', 'aHVudGVyMg=='],
  'a short name': ['DB_PASS=hunter2 registryAuth=x', 'hunter2'],
  'keys as the cloud’s tools take them': ['tool --ak hunter1 --sk hunter2', 'hunter2'],
  'text in base64': ['blob cGFzczpodW50ZXJodW50ZXI= end', 'cGFzczpodW50ZXJodW50ZXI'],
  'a key in base64': ['tls.key: LS0tLS1CRUdJTiBQUklWQVRF', 'LS0tLS1CRUdJTiBQUklWQVRF'],
  'a PEM block in a container’s log': [
    `2026-11-21T01:02:03.4Z stderr F ${PEM.replaceAll('\n', '\n2026-11-21T01:02:03.4Z stderr F ')}`,
    'short',
  ],
  'the end of a PEM block in a container’s log': [
    '2026-11-21T01:02:03.4Z stderr F shOrt9\n2026-11-21T01:02:03.4Z stderr F -----END KEY-----',
    'shOrt9',
  ],
  'a secret that a container’s log has in two parts': [
    '2026-11-21T01:02:03.4Z stdout P password=hun\n2026-11-21T01:02:03.4Z stdout P te\n2026-11-21T01:02:03.4Z stdout F r2 x',
    'r2',
  ],
  'a YAML block in a container’s log': [
    '2026-11-21T01:02:03.4Z stdout F password: |\n2026-11-21T01:02:03.4Z stdout F   hunter2',
    'hunter2',
  ],
  'a web token over lines': ['token is\neyJhbGciOiJIUzI1\n.eyJzdWIi\nc2lnbmF0\nnext line', 'c2lnbmF0'],
  'a web token over lines of a container’s log': [
    '2026-11-21T01:02:03.4Z stdout F eyJhbGciOiJIUzI1\n2026-11-21T01:02:03.4Z stdout F c2lnbmF0',
    'c2lnbmF0',
  ],
  'an annotation': [
    'kubectl.kubernetes.io/last-applied-configuration: {"metadata":{"annotations":{"x/password":"hunter2"}}}',
    'hunter2',
  ],
  'a password with an at sign in a URL': ['redis://u:p@hunter2@10.0.0.1/0', 'hunter2'],
  'credentials without a scheme': ['dial app:hunter2@10.0.0.1:3306', 'hunter2'],
  'a query string': ['GET /x?a=1&X-Amz-Signature=hunter2&b=2', 'hunter2'],
  'a query string that is escaped': ['u=https%3A%2F%2Fx%3FX-Amz-Signature%3Dhunter2%26b', 'hunter2'],
  'a signed query of the cloud’s store': ['GET /o?q-ak=hunter1&q-signature=hunter2', 'hunter2'],
  HTML: ['<a data="{&quot;password&quot;:&quot;hunter2&quot;}">', 'hunter2'],
  'escapes of JSON': ['{\\u0022password\\u0022:\\u0022hunter2\\u0022}', 'hunter2'],
  'a comment of nftables': ['counter comment "password=hunter2"', 'hunter2'],
  'an alias of a link': ['    alias token=hunter2', 'hunter2'],
  'a flag in a list': ['["agent","--password","hunter2","--x"]', 'hunter2'],
  'a flag in a list in YAML': ['command:\n- agent\n- --password\n- hunter2\n', 'hunter2'],
  'a password that looks like a flag': ['agent --password -hunter2', 'hunter2'],
  'a user for curl': ['curl -u me:hunter2 https://10.0.0.1', 'hunter2'],
  'a password of several words in YAML': ['password: correct horse hunter2\nnext: 1', 'hunter2'],
  'a mapping': ['credentials:\n  user: me\n  pin: hunter2\nnext: 1', 'hunter2'],
  'a list below its name': ['tokens:\n- hunter1\n- hunter2\nnext: 1', 'hunter2'],
  'JSON over lines': ['{\n  "credentials": {\n    "pin": "hunter2"\n  }\n}', 'hunter2'],
  'a cookie': ['Cookie: a=b; session=hunter2', 'hunter2'],
  'a digest header': ['Authorization: Digest username="me", response="hunter2"', 'hunter2'],
  words: ['Secret Access Key: hunter2', 'hunter2'],
  '.netrc': ['machine x login me password hunter2', 'hunter2'],
  'a line of shadow': ['root:$6$saltsalt$hunter2hunter2:19000:0:99999:7:::', 'hunter2'],
  'base64 with slashes': ['x aGVsbG8/d29ybGQvMTIz/NDU2Nzg5MEFCQ0RF', 'NDU2Nzg5MEFCQ0RF'],
};

for (const [what, [text, secret]] of Object.entries(SECRETS)) {
  test(`redactText: removes ${what}`, (t) => {
    t.false(redactText(text).includes(secret), redactText(text));
  });
}

test('redactText: leaves alone what is needed to help', (t) => {
  const texts = [
    'ip -6 route add fd00::1/128 dev eni0123456789a table 3999 proto 84',
    '{"containerId":"a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90","state":"active"}',
    '/var/run/netns/cni-1b4c1a2e-7c31-0b3f-5a77-3a2d1f0e9c8b',
    '/var/log/pods/kube-system_tke-eni-agent-x7k2p_0b3f5a77-3a2d-1f0e-9c8b-1b4c1a2e7c31/agent/0.log',
    '2026-11-21T18:47:30.123Z INFO kernel changed',
    'tokens: 12, secretCount=3, hasPassword: false',
    'vmap { 4003 : jump eni_4003, 4004 : jump eni_4004 }',
    'RTM_NEWROUTE EEXIST net.ipv4.conf.eni0123456789a.rp_filter = 1',
    'eni-0abc1234 52:54:00:00:00:01 10.0.2.10 asg-1 sha256:a1b2c3',
    'https://10.0.0.1:6443/api/v1/nodes/node-1',
    '3: eni0123456789a@if2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 link-netns cni-1b4c1a2e-7c31-0b3f-5a77',
    'fe80::1 dev eth0 lladdr 52:54:00:00:00:01 REACHABLE',
    'image ccr.ccs.tencentyun.com/tke/eni:v1@sha256:a1b2c3',
    'pod default/authenticator-7c9d8f6b5d-x7k2p passes, key c1/eth0: ok',
    '{"key":"a1b2c3/eth0","value":"10.0.0.1","name":"web-0"}',
    '10.0.2.10 is the address of Pod kube-system/konnectivity-agent-5d9f7c8b6d-abcde, and eth0 has it too',
    'finding: rule-missing\n  next: ip rule add from 10.0.2.10 lookup 4001 priority 1536 proto 84',
    'IPv6 fd00:1234:5678:9abc:def0:1234:5678:9abc/128 via fe80::5054:ff:fe00:1',
    'net.ipv4.conf.all.accept_source_route net.netfilter.nf_conntrack_tcp_timeout_established',
    'INVALID_ARGUMENT DEADLINE_EXCEEDED UNIMPLEMENTED RESOURCE_EXHAUSTED NotificationsOverrun',
  ];
  for (const text of texts) t.is(redactText(text), text);
});

test('redactText: redacting twice changes nothing more', (t) => {
  for (const [text] of Object.values(SECRETS)) t.is(redactText(redactText(text)), redactText(text));
});

test('redactText: a planted word under a secret name never survives, whatever is around it', async (t) => {
  const name = fc.constantFrom('password', 'API_TOKEN', 'clientSecret', 'TENCENTCLOUD_SECRET_KEY', 'x-access-key');
  const form = fc.constantFrom(
    (key: string, value: string) => `${key}=${value}`,
    (key: string, value: string) => `${key}: ${value}`,
    (key: string, value: string) => `"${key}": "${value}"`,
    (key: string, value: string) => `--${key} ${value}`,
    (key: string, value: string) => JSON.stringify({ msg: JSON.stringify({ [key]: value }) }),
  );
  const around = fc.stringMatching(/^[a-z0-9 {}[\]:,.\n-]{0,40}$/);
  await assertLaw(
    t,
    () =>
      fc.property(name, form, around, around, (key, write, before, after) => {
        const value = 'pLaNtEd';
        return !redactText(`${before}\n${write(key, value)} ${after}`).includes(value);
      }),
    { numRuns: 2_000 },
  );
});

test('redactText: takes time in proportion to the text', (t) => {
  for (const piece of [
    'name: a ',
    '-u a:',
    'a:b@',
    'password ',
    ' stdout P ',
    '\n- ',
    'eyJaaaaaaa\n',
    'auth: |\n ',
    'token',
    '"password',
    '-----BEGIN ',
    '-----END ',
    '\\"',
    'aA1',
    'a.',
    ' --secret',
    'https://a',
  ]) {
    const text = piece.repeat(40_000);
    const startMs = performance.now();
    redactText(text);
    t.true(performance.now() - startMs < 20_000, piece);
  }
});

test('redactValue: removes by name at any depth, and from names', (t) => {
  const value = { a: [{ secretKey: { nested: 'x' }, n: 1 }], 'Bearer abc123': 'y', tokensLeft: 4 };
  t.deepEqual(redactValue(value), { a: [{ secretKey: '[removed]', n: 1 }], 'Bearer [removed]': 'y', tokensLeft: 4 });
});

test('pickAllowed: keeps what is known, and of the rest the kind', (t) => {
  const conf = {
    name: 'net',
    plugins: [{ type: 'mystery', pin: '1234', backend: '127.0.0.1:61677', deep: { name: 'x' }, mtu: 1500 }],
  };
  t.deepEqual(pickAllowed(conf, CNI_CONF_NAMES), {
    name: 'net',
    plugins: [
      { type: 'mystery', pin: '[removed: text]', backend: '127.0.0.1:61677', deep: '[removed: object]', mtu: 1500 },
    ],
  });
});
