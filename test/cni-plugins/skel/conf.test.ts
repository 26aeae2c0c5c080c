import test from 'ava';
import fc from 'fast-check';
import { decodeConf } from '../../../cni-plugins/skel/conf.ts';
import { CniError } from '../../../cni-plugins/skel/error.ts';
import type { Command } from '../../../cni-plugins/skel/version.ts';
import { assertLaw } from '../../support/law.ts';

const MINIMAL = { cniVersion: '1.1.0', name: 'net', type: 'tke-route-eni' };

function decode(conf: unknown, command: Command = 'ADD', plugin: 'tke-route-eni' | 'tke-eni-ipamc' = 'tke-route-eni') {
  return decodeConf(typeof conf === 'string' ? conf : JSON.stringify(conf), plugin, command);
}

function faultOf(
  conf: unknown,
  command?: Command,
  plugin?: 'tke-route-eni' | 'tke-eni-ipamc',
): { code: number; msg: string } {
  try {
    decode(conf, command, plugin);
    return { code: 0, msg: 'no fault' };
  } catch (error) {
    if (!(error instanceof CniError)) throw error;
    return { code: error.code, msg: error.message };
  }
}

test('decodeConf: fills in what a minimal conf leaves out', (t) => {
  t.deepEqual(decode(MINIMAL), {
    cniVersion: '1.1.0',
    name: 'net',
    backend: 'unix:/run/tke-eni/agent.sock',
    mtu: 0,
    disableIPv6: false,
    portMappings: [],
    runtimeConfig: {},
    dataDir: '/var/lib/cni/tke-eni',
    uplink: false,
    filterPlace: false,
    ignoredKeys: [],
    validAttachments: [],
  });
});

test('decodeConf: filterPlace holds for a Pod without a bandwidth limit, and for a main plugin', (t) => {
  const conf = { ...MINIMAL, filterPlace: true };
  t.like(decode(conf), { filterPlace: true, ignoredKeys: [] });
  t.like(decode({ ...conf, runtimeConfig: { portMappings: [] } }), { filterPlace: true });
  t.like(decode({ ...conf, runtimeConfig: { bandwidth: { egressRate: 1, egressBurst: 1 } } }), { filterPlace: false });
  const ipam = { ...conf, ipam: { type: 'tke-eni-ipamc' } };
  t.like(decode(ipam, 'ADD', 'tke-eni-ipamc'), { filterPlace: false });
  t.is(faultOf({ ...MINIMAL, filterPlace: 'yes' }, 'ADD').code, 7);
});

test("decodeConf: reads the product's conf", (t) => {
  const conf = decode({
    cniVersion: '0.3.1',
    name: 'generic-veth',
    type: 'tke-route-eni',
    routeTable: 1,
    disableIPv6: true,
    mtu: 1500,
    ipam: { type: 'tke-eni-ipamc', backend: '127.0.0.1:61677' },
  });
  t.like(conf, { backend: '127.0.0.1:61677', mtu: 1500, disableIPv6: true });
});

test('decodeConf: reads the older conf of the product, and names the keys that it does not use', (t) => {
  const old = { cniVersion: '0.2.0', name: 'tke-route-eni', type: 'tke-route-eni', eni: 'eth1', routeTable: 1 };
  t.like(decode({ ...old, kubeconfig: '/etc/kubernetes/k', logLevel: 'info', ipam: { subnet: 'x' } }), {
    cniVersion: '0.2.0',
    ignoredKeys: ['eni', 'kubeconfig', 'logLevel', 'ipam.subnet'],
  });
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`${index}`.padEnd(200, 'x'), 1]));
  const { ignoredKeys } = decode({ ...MINIMAL, ...many });
  t.is(ignoredKeys.length, 16);
  t.true(ignoredKeys.every((key) => key.length === 64));
});

test("decodeConf: as IPAM plugin of cilium-cni, reads ipam.uplink and none of cilium-cni's own keys", (t) => {
  const cilium = {
    ...{ cniVersion: '0.3.1', name: 'cilium', type: 'cilium-cni', 'enable-debug': false, 'log-file': '/x' },
    ipam: { type: 'tke-eni-ipamc', uplink: true },
  };
  t.like(decode(cilium, 'ADD', 'tke-eni-ipamc'), { uplink: true, ignoredKeys: [] });
  t.like(decode({ ...cilium, ipam: { type: 'tke-eni-ipamc', pool: 'x' } }, 'ADD', 'tke-eni-ipamc'), {
    uplink: false,
    ignoredKeys: ['ipam.pool'],
  });
  t.like(decode(cilium), { uplink: false }, 'only for a main plugin of others');
  const { code, msg } = faultOf({ ...cilium, cniVersion: '0.2.0' }, 'ADD', 'tke-eni-ipamc');
  t.is(code, 7);
  t.regex(msg, /cniVersion: expected 0\.3\.0 or later, as the result of 0\.2\.0 has no interface for ipam\.uplink/);
});

test('decodeConf: lets the main object win over the ipam section', (t) => {
  const conf = decode({ ...MINIMAL, backend: 'unix:/a', ipam: { backend: 'unix:/b', timeoutMs: 500 } });
  t.like(conf, { backend: 'unix:/a', timeoutMs: 500 });
});

test("decodeConf: tolerates CNI's own keys", (t) => {
  const keys = {
    args: { cni: {} },
    runtimeConfig: {},
    capabilities: { x: true },
    ipMasq: false,
    ipam: {},
    disableCheck: true,
  };
  t.is(decode({ ...MINIMAL, ...keys, 'cni.dev/valid-attachments': 7, 'cni.dev/future': 1 }).name, 'net');
});

test('decodeConf: names every fault of ours at once', (t) => {
  const { code, msg } = faultOf({
    ...MINIMAL,
    backend: 'nowhere',
    mtu: 12,
    routeTable: 'x',
    disableIPv6: 'yes',
    timeoutMs: 1,
    ipam: { type: 'host-local' },
  });
  t.is(code, 7);
  const expected = [
    'backend: expected "unix:" and the absolute path of a socket (107 bytes at most), or "host:port", got "nowhere"',
    'mtu: expected a whole number from 68 to 65535, got 12',
    'routeTable: expected a whole number from 0 to 4294967295, got "x"',
    'disableIPv6: expected true or false, got "yes"',
    'timeoutMs: expected a whole number from 100 to 600000, got 1',
    'ipam.type: expected one of "tke-eni-ipamc", got "host-local"',
  ];
  for (const part of expected) t.true(msg.includes(part), `${part} is not in ${msg}`);
});

test('decodeConf: as IPAM plugin, reads the ipam section and leaves the rest to the main plugin', (t) => {
  const ptp = {
    cniVersion: '1.0.0',
    name: 'net',
    type: 'ptp',
    ipMasq: true,
    mtu: 'its own',
    ipam: { type: 'tke-eni-ipamc', backend: 'unix:/a' },
  };
  t.like(decode(ptp, 'ADD', 'tke-eni-ipamc'), { backend: 'unix:/a', mtu: 0 });
  t.like(faultOf({ ...ptp, ipam: { type: 'tke-eni-ipamc', mtu: 'x' } }, 'ADD', 'tke-eni-ipamc'), { code: 7 });
  t.regex(faultOf({ ...MINIMAL }, 'ADD', 'tke-eni-ipamc').msg, /ipam: expected an object, got nothing/);
});

for (const [what, stdin, code, msg] of [
  ['nothing', '', 6, /expected a network configuration as JSON, got nothing/],
  ['white space', ' \n', 6, /got nothing/],
  ['half an object', '{"cniVersion":', 6, /no JSON: /],
  ['a list', '[]', 6, /expected a JSON object/],
  ['null', 'null', 6, /expected a JSON object/],
  ['a version that is no text', '{"cniVersion":1}', 6, /cniVersion: expected a text, got 1/],
  ['no version', '{"name":"x"}', 1, /0\.1\.0 \(the conf has no cniVersion\) is not supported/],
  ['version 0.1.0', '{"cniVersion":"0.1.0","name":"x"}', 1, /0\.1\.0 is not supported/],
  ['version 9.0.0', '{"cniVersion":"9.0.0","name":"x"}', 1, /9\.0\.0 is not supported/],
  ['no name', '{"cniVersion":"1.0.0"}', 7, /name: expected a value, got nothing/],
  ['a bad name', '{"cniVersion":"1.0.0","name":"a b"}', 7, /name: expected a letter or digit/],
  [
    'a bad dns',
    '{"cniVersion":"1.0.0","name":"a","dns":{"nameservers":[1]}}',
    7,
    /dns\.nameservers\[0\]: expected a text, got 1/,
  ],
  [
    'a bad prevResult',
    '{"cniVersion":"1.0.0","name":"a","prevResult":{"ips":[{}]}}',
    7,
    /prevResult\.ips\[0\]\.address: expected a value/,
  ],
] as const) {
  test(`decodeConf: answers code ${code} to ${what}`, (t) => {
    const fault = faultOf(stdin);
    t.is(fault.code, code);
    t.regex(fault.msg, msg);
  });
}

for (const [command, version] of [
  ['CHECK', '0.2.0'],
  ['CHECK', '0.3.1'],
  ['STATUS', '1.0.0'],
  ['GC', '0.4.0'],
] as const) {
  test(`decodeConf: answers code 1 to ${command} in version ${version}`, (t) => {
    const fault = faultOf({ ...MINIMAL, cniVersion: version }, command);
    t.is(fault.code, 1);
    t.is(fault.msg, `CNI version ${version} has no command ${command}`);
  });
}

test('decodeConf: names both version lists when it answers code 1', (t) => {
  const error = t.throws<CniError>(() => decode({ ...MINIMAL, cniVersion: '0.1.0' }), { code: 1 });
  t.regex(error?.details ?? '', /conf: \[0\.1\.0\]; plugin: \[0\.2\.0, 0\.3\.0, 0\.3\.1, 0\.4\.0, 1\.0\.0, 1\.1\.0\]/);
});

test('decodeConf: wants a prevResult for CHECK, and says so once', (t) => {
  t.regex(faultOf(MINIMAL, 'CHECK').msg, /prevResult: expected the result of ADD, as CHECK requires, got nothing/);
  const { msg } = faultOf({ ...MINIMAL, prevResult: 1 }, 'CHECK');
  t.is(msg.split('prevResult: expected').length, 2 + 1, msg);
  t.is(decode({ ...MINIMAL, prevResult: { ips: [] } }, 'CHECK').prevResult?.ips.length, 0);
});

test('decodeConf: reads what GC must keep, under either name', (t) => {
  const kept = [{ containerID: 'c1', ifname: 'eth0' }];
  t.deepEqual(decode({ ...MINIMAL, 'cni.dev/valid-attachments': kept }, 'GC').validAttachments, kept);
  t.deepEqual(decode({ ...MINIMAL, 'cni.dev/attachments': kept }, 'GC').validAttachments, kept);
  t.deepEqual(decode({ ...MINIMAL, 'cni.dev/valid-attachments': [] }, 'GC').validAttachments, []);
  t.deepEqual(decode({ ...MINIMAL, 'cni.dev/valid-attachments': null }, 'GC').validAttachments, []);
});

test('decodeConf: tells a GC that does not say what to keep from one that keeps nothing, and refuses half a list', (t) => {
  t.is(decode(MINIMAL, 'GC').validAttachments, undefined);
  const half = { ...MINIMAL, 'cni.dev/valid-attachments': [{ containerID: 'c1' }] };
  t.regex(faultOf(half, 'GC').msg, /cni\.dev\/valid-attachments\[0\]\.ifname: expected a value/);
});

test('decodeConf: answers any JSON with a conf or a CNI error', async (t) => {
  const json = fc.oneof(
    fc.json(),
    fc
      .record({ cniVersion: fc.constant('1.1.0') }, { noNullPrototype: true })
      .chain((base) =>
        fc
          .dictionary(
            fc.constantFrom('name', 'ipam', 'mtu', 'dns', 'prevResult', 'backend', 'x', '__proto__'),
            fc.jsonValue(),
          )
          .map((rest) => JSON.stringify({ ...rest, ...base })),
      ),
  );
  await assertLaw(
    t,
    (t) =>
      fc.property(json, fc.constantFrom<Command>('ADD', 'DEL', 'CHECK', 'STATUS', 'GC'), (text, command) => {
        const { code } = faultOf(text, command);
        t.true([0, 1, 6, 7].includes(code), `code ${code}`);
      }),
    { numRuns: 500 },
  );
});

test('decodeConf: lets a Pod end whatever else is wrong with the conf', (t) => {
  const wrong = { ...MINIMAL, name: '/', backend: 'unix:/run/x.sock', mtu: 'big', colour: 'red', prevResult: 1 };
  t.deepEqual(decode(wrong, 'DEL'), {
    cniVersion: '1.1.0',
    name: '/',
    backend: 'unix:/run/x.sock',
    mtu: 0,
    disableIPv6: false,
    portMappings: [],
    runtimeConfig: {},
    dataDir: '/var/lib/cni/tke-eni',
    uplink: false,
    filterPlace: false,
    ignoredKeys: [],
    validAttachments: [],
  });
  t.is(faultOf(wrong, 'ADD').code, 7);
});

test('decodeConf: refuses a DEL that does not say where the agent is', (t) => {
  const { code, msg } = faultOf({ ...MINIMAL, backend: 'agent', colour: 'red' }, 'DEL');
  t.is(code, 7);
  t.regex(msg, /^network configuration: backend: expected .*, got "agent"$/);
});
