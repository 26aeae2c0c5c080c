import test from 'ava';
import { ACCEPTED_NETWORKS, readPodNetworks } from '../../crd/pod-networks.ts';

for (const text of [undefined, '', ' ', '\n']) {
  test(`readPodNetworks: ${JSON.stringify(text)} leaves the choice to the default`, (t) => {
    t.deepEqual(readPodNetworks(text), { kind: 'default' });
  });
}

for (const [text, name] of [
  ['tke-route-eni', 'tke-route-eni'],
  [' tke-bridge ', 'tke-bridge'],
  ['tke-direct-eni@eth0', 'tke-direct-eni'],
  ['kube-system/tke-bridge', 'tke-bridge'],
  ['kube-system/tke-route-eni@eth0', 'tke-route-eni'],
  ['[{"name":"tke-bridge"}]', 'tke-bridge'],
  ['[{"name":"tke-bridge","namespace":"kube-system","interface":"eth0"}]', 'tke-bridge'],
  ['[{"name":"tke-route-eni","interfaceRequest":"eth0","ips":["10.0.0.1"],"mac":"x"}]', 'tke-route-eni'],
  ['[{"name":"tke-bridge","namespace":""}]', 'tke-bridge'],
] as const) {
  test(`readPodNetworks: ${text} names ${name}`, (t) => {
    t.deepEqual(readPodNetworks(text), { kind: 'named', name });
  });
}

for (const [text, name] of [
  ['flannel', 'flannel'],
  ['ns/sriov-net@eth0', 'sriov-net'],
  ['tke-route-eni-2', 'tke-route-eni-2'],
  ['[{"name":"macvlan-conf"}]', 'macvlan-conf'],
] as const) {
  test(`readPodNetworks: ${text} names a network that is not ours`, (t) => {
    t.deepEqual(readPodNetworks(text), { kind: 'other', name });
  });
}

const LIST = /one network of .*; a list of several networks is not served/;
const NAME_RULE = /a name of lower case letters, digits and "-"/;
const JSON_LIST = /a JSON list such as \[\{"name":"tke-route-eni"\}\]/;
const INTERFACE = /^no interface, or eth0/;
const REFUSED: readonly (readonly [string, string, RegExp, string])[] = [
  ['two networks', 'tke-bridge,tke-route-eni', LIST, 'tke-bridge,tke-route-eni'],
  ['the same network twice', 'tke-bridge,tke-bridge', LIST, 'tke-bridge,tke-bridge'],
  ['a network beside another', 'tke-route-eni,macvlan-conf', LIST, 'tke-route-eni,macvlan-conf'],
  ['a JSON list of two', '[{"name":"tke-bridge"},{"name":"a"}]', LIST, '[{"name":"tke-bridge"},{"name":"a"}]'],
  ['a comma at the end', 'tke-bridge,', NAME_RULE, 'tke-bridge,'],
  ['a comma alone', ',', NAME_RULE, ','],
  ['an empty namespace', '/tke-bridge', NAME_RULE, '/tke-bridge'],
  ['an empty name', 'kube-system/', NAME_RULE, 'kube-system/'],
  ['an empty interface', 'tke-bridge@', NAME_RULE, 'tke-bridge@'],
  ['two namespaces', 'a/b/tke-bridge', NAME_RULE, 'a/b/tke-bridge'],
  ['two interfaces', 'tke-bridge@eth0@eth1', NAME_RULE, 'tke-bridge@eth0@eth1'],
  ['an underscore', 'my_net', NAME_RULE, 'my_net'],
  ['a dash at the end', 'flannel-', NAME_RULE, 'flannel-'],
  ['spaces between', 'tke bridge net', NAME_RULE, 'tke bridge net'],
  ['another interface', 'tke-bridge@net1', INTERFACE, 'net1'],
  ['another interface in JSON', '[{"name":"tke-bridge","interface":"eth1"}]', INTERFACE, 'eth1'],
  ['half of a JSON list', '[{"name":', JSON_LIST, '[{"name":'],
  ['a JSON object', '{"name":"tke-bridge"}', JSON_LIST, '{"name":"tke-bridge"}'],
  ['a JSON text', '"tke-bridge"', JSON_LIST, '"tke-bridge"'],
  ['a JSON list of texts', '["tke-bridge"]', JSON_LIST, '["tke-bridge"]'],
  ['a JSON entry without a name', '[{"namespace":"a"}]', JSON_LIST, '[{"namespace":"a"}]'],
  ['a number as the name', '[{"name":7}]', JSON_LIST, '[{"name":7}]'],
  ['an empty JSON list', '[]', /^one of tke-bridge/, '[]'],
  ['a slip of the hand', 'tke-route-enni', /^tke-route-eni$/, 'tke-route-enni'],
  ['upper case', 'TKE-Bridge', /^tke-bridge$/, 'TKE-Bridge'],
  ['a slip in JSON', '[{"name":"tke_route_eni"}]', /^tke-route-eni$/, 'tke_route_eni'],
  ['a slip with a namespace', 'kube-system/tke-dirct-eni@eth0', /^tke-direct-eni$/, 'tke-dirct-eni'],
  ['a quarter of a megabyte', 'a@'.repeat(131_072), /^at most 4096 characters$/, '262144 characters'],
];
for (const [what, text, expected, got] of REFUSED) {
  test(`readPodNetworks: refuses ${what} and says what is accepted`, (t) => {
    const networks = readPodNetworks(text);
    if (networks.kind !== 'refused') return t.fail(JSON.stringify(networks));
    t.regex(networks.expected, expected);
    t.is(networks.got, got);
  });
}

test('ACCEPTED_NETWORKS: names all networks', (t) => {
  t.is(ACCEPTED_NETWORKS, 'tke-bridge, tke-route-eni, tke-direct-eni');
});
