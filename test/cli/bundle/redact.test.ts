import test from 'ava';
import fc from 'fast-check';
import { redactText } from '../../../cli/bundle/redact-text.ts';
import { CNI_CONF_NAMES, keepAllowed, redactValue } from '../../../cli/bundle/redact-value.ts';

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
  ];
  for (const text of texts) t.is(redactText(text), text);
});

test('redactText: redacting twice changes nothing more', (t) => {
  for (const [text] of Object.values(SECRETS)) t.is(redactText(redactText(text)), redactText(text));
});

test('redactText: a planted word under a secret name never survives, whatever is around it', (t) => {
  const name = fc.constantFrom('password', 'API_TOKEN', 'clientSecret', 'TENCENTCLOUD_SECRET_KEY', 'x-access-key');
  const form = fc.constantFrom(
    (key: string, value: string) => `${key}=${value}`,
    (key: string, value: string) => `${key}: ${value}`,
    (key: string, value: string) => `"${key}": "${value}"`,
    (key: string, value: string) => `--${key} ${value}`,
    (key: string, value: string) => JSON.stringify({ msg: JSON.stringify({ [key]: value }) }),
  );
  const around = fc.stringMatching(/^[a-z0-9 {}[\]:,.\n-]{0,40}$/);
  fc.assert(
    fc.property(name, form, around, around, (key, write, before, after) => {
      const value = 'pLaNtEd';
      return !redactText(`${before}\n${write(key, value)} ${after}`).includes(value);
    }),
    { numRuns: 2_000 },
  );
  t.pass();
});

test('redactText: takes time in proportion to the text', (t) => {
  for (const piece of ['token', '"password', '-----BEGIN ', '\\"', 'aA1', 'a.', ' --secret', 'https://a']) {
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

test('keepAllowed: keeps what is known, and of the rest the kind', (t) => {
  const conf = {
    name: 'net',
    plugins: [{ type: 'mystery', pin: '1234', backend: '127.0.0.1:61677', deep: { name: 'x' }, mtu: 1500 }],
  };
  t.deepEqual(keepAllowed(conf, CNI_CONF_NAMES), {
    name: 'net',
    plugins: [
      { type: 'mystery', pin: '[removed: text]', backend: '127.0.0.1:61677', deep: '[removed: object]', mtu: 1500 },
    ],
  });
});
