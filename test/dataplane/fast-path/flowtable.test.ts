import test from 'ava';
import {
  flowtableDeleteCommands,
  flowtableDeviceCommands,
  flowtableReplaceCommands,
  flowtableText,
  splitFlowtableListing,
} from '../../../dataplane/fast-path/flowtable.ts';

test('flowtable: a table of its own learns only packets from Pods, after all other chains of the hook forward', (t) => {
  t.is(
    flowtableReplaceCommands(flowtableText([4006, 4005, 4006]), ['eth5', 'eth0', 'eth5']),
    `table inet tke_eni_flows
delete table inet tke_eni_flows
table inet tke_eni_flows {
 flowtable ft {
  hook ingress priority 0
 }
 chain forward {
  type filter hook forward priority filter + 10; policy accept;
  iifgroup { 4005, 4006 } meta l4proto { tcp, udp } ct status assured ct mark and 0x100 == 0x0 flow add @ft
 }
 chain output {
  type filter hook output priority filter + 10; policy accept;
  fib saddr type != local ct mark set ct mark or 0x100
 }
}
add flowtable inet tke_eni_flows ft { hook ingress priority 0; devices = { "eth0", "eth5" }; }
`,
  );
});

test('flowtable: a node without ENIs learns nothing', (t) => {
  t.notRegex(flowtableText([]), /flow add/);
});

test('flowtable: no message has more devices than the kernel takes, and none is lost', (t) => {
  const devices = Array.from({ length: 1_002 }, (_, at) => `eni${at}`);
  const messages = flowtableDeviceCommands(devices).trimEnd().split('\n');
  const named = messages.map((message) => [...message.matchAll(/"([^"]+)"/g)].map(([, name]) => name ?? ''));
  t.true(named.every(({ length }) => length <= 128));
  t.deepEqual(named.flat().sort(), [...devices].sort());
  t.is(flowtableDeviceCommands([]), '');
});

test('flowtable: a name that nft does not read literally is left out', (t) => {
  t.is(flowtableDeviceCommands(['eth*', 'a"b', 'a b']), '');
});

test('flowtable: deleting declares the table first, so that it succeeds without one', (t) => {
  t.is(flowtableDeleteCommands(), 'table inet tke_eni_flows\ndelete table inet tke_eni_flows\n');
});

const LISTING = (devices: string) => `table inet tke_eni_flows {
\tflowtable ft {
\t\thook ingress priority 0
${devices}\t}

\tchain forward {
\t\ttype filter hook forward priority 10; policy accept;
\t}
}
`;

test('flowtable: a listing is the same without its devices, however nft quotes them', (t) => {
  t.deepEqual(splitFlowtableListing(LISTING('\t\tdevices = { "eth0", eth5, eni0.7 }\n')), {
    text: LISTING(''),
    devices: ['eth0', 'eth5', 'eni0.7'],
  });
  t.deepEqual(splitFlowtableListing(LISTING('')), { text: LISTING(''), devices: [] });
});
