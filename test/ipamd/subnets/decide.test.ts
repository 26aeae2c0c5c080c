import test from 'ava';
import { type ChoiceFacts, decideChoices } from '../../../ipamd/subnets/decide-choices.ts';
import {
  decideAdoption,
  findZoneContradiction,
  readSubnetConfig,
  readSubnetLabel,
  renderConfigProblems,
} from '../../../ipamd/subnets/decide-subnet-config.ts';

const KEY = 'TKE_ENI_IPAMD_SUBNET_ID';
const reads = test.macro(
  (t, data: Readonly<Record<string, unknown>> | undefined, subnetIds: readonly string[], faults: readonly string[]) => {
    const read = readSubnetConfig(data);
    t.deepEqual(read.config.subnetIds, subnetIds);
    t.deepEqual(
      read.faults.map(({ path, got }) => `${path} ${got}`),
      faults,
    );
  },
);
test(
  'readSubnetConfig: reads a list with colons, each subnet once',
  reads,
  { [KEY]: ' subnet-aaaa:subnet-bbbb: subnet-aaaa:' },
  ['subnet-aaaa', 'subnet-bbbb'],
  [],
);
test(
  'readSubnetConfig: names what is no subnet, and keeps the others',
  reads,
  { [KEY]: 'subnet-aaaa,subnet-bbbb:subnet-cccc:vpc-1' },
  ['subnet-cccc'],
  [`data.${KEY} "subnet-aaaa,subnet-bbbb"`, `data.${KEY} "vpc-1"`],
);
test('readSubnetConfig: wants a subnet', reads, { [KEY]: ' : ' }, [], [`data.${KEY} " : "`]);
test('readSubnetConfig: wants the key', reads, {}, [], [`data.${KEY} nothing`]);
test('readSubnetConfig: wants the ConfigMap', reads, undefined, [], [`data.${KEY} nothing`]);
test(
  'readSubnetConfig: names a VPC that is none',
  reads,
  { [KEY]: 'subnet-aaaa', TKE_ENI_IPAMD_VPC_ID: 'my vpc' },
  ['subnet-aaaa'],
  ['data.TKE_ENI_IPAMD_VPC_ID "my vpc"'],
);
test('readSubnetConfig: reads the VPC, and says that the zone has no effect', (t) => {
  const read = readSubnetConfig({
    [KEY]: 'subnet-aaaa',
    TKE_ENI_IPAMD_VPC_ID: 'vpc-aaaa',
    TKE_ENI_IPAMD_ZONE: '100003:100004',
  });
  t.is(read.config.vpcId, 'vpc-aaaa');
  t.deepEqual([read.faults.length, read.notes.length], [0, 1]);
});

const contradiction = test.macro((t, list: unknown, zones: readonly string[], want: RegExp | undefined) => {
  const found = findZoneContradiction(
    list,
    zones.map((zone, index) => ({ subnetId: `subnet-${index}`, zone })),
  );
  if (want === undefined) t.is(found, undefined);
  else t.regex(found ?? '', want);
});
test('findZoneContradiction: none without a list', contradiction, undefined, ['ap-guangzhou-3'], undefined);
test('findZoneContradiction: none while no subnet is known', contradiction, 'ap-guangzhou-3', [], undefined);
test('findZoneContradiction: none of numbers', contradiction, '100003:100004', ['ap-guangzhou-6'], undefined);
test(
  'findZoneContradiction: the same, in any order',
  contradiction,
  ' b-c-2 : a-b-1:',
  ['a-b-1', 'b-c-2', 'a-b-1'],
  undefined,
);
test(
  'findZoneContradiction: a subnet elsewhere',
  contradiction,
  'a-b-1',
  ['a-b-1', 'a-b-2'],
  /: subnet-1 is in a-b-2; /,
);
test(
  'findZoneContradiction: a zone without a subnet',
  contradiction,
  'a-b-1,a-b-2',
  ['a-b-1'],
  /: no subnet is in a-b-2; /,
);
test('findZoneContradiction: what is no text', contradiction, 7, ['a-b-1'], undefined);

const label = test.macro((t, text: string | undefined, subnetIds: readonly string[], wrong: readonly string[]) =>
  t.deepEqual(readSubnetLabel(text), { subnetIds, invalid: wrong }),
);
test('readSubnetLabel: reads one', label, 'subnet-aaaa', ['subnet-aaaa'], []);
test(
  'readSubnetLabel: reads several, joined either way',
  label,
  'subnet-aaaa_subnet-bbbb.subnet-cccc',
  ['subnet-aaaa', 'subnet-bbbb', 'subnet-cccc'],
  [],
);
test('readSubnetLabel: gives what is no subnet apart', label, 'subnet-aaaa_x', ['subnet-aaaa'], ['x']);
test('readSubnetLabel: needs none', label, undefined, [], []);

const A = { subnetIds: ['subnet-aaaa'] };
const AB = { subnetIds: ['subnet-aaaa', 'subnet-bbbb'] };
const knows =
  (...ids: readonly string[]) =>
  (id: string) =>
    ids.includes(id);
test('decideAdoption: takes a good one', (t) => {
  const facts = { candidate: AB, hasFaults: false, lastGood: A, isKnown: knows('subnet-aaaa', 'subnet-bbbb') };
  t.deepEqual(decideAdoption(facts), { kind: 'adopt', config: AB, unknown: [] });
});
test('decideAdoption: keeps the last good one before a malformed one', (t) => {
  const facts = { candidate: AB, hasFaults: true, lastGood: A, isKnown: () => true };
  t.deepEqual(decideAdoption(facts), { kind: 'keep', unknown: [] });
});
test('decideAdoption: keeps the last good one before one with subnets that are not', (t) => {
  const lastGood = { subnetIds: ['subnet-cccc'] };
  const facts = { candidate: AB, hasFaults: false, lastGood, isKnown: knows('subnet-aaaa', 'subnet-cccc') };
  t.deepEqual(decideAdoption(facts), { kind: 'keep', unknown: ['subnet-bbbb'] });
});
test('decideAdoption: takes what is good of the first one, look after look', (t) => {
  const facts = { candidate: AB, hasFaults: true, isKnown: knows('subnet-aaaa') };
  const want = { kind: 'adopt', config: A, unknown: ['subnet-bbbb'] } as const;
  t.deepEqual(decideAdoption({ ...facts, lastGood: undefined }), want);
  t.deepEqual(decideAdoption({ ...facts, lastGood: A }), want);
});

const SUBNETS = [
  { subnetId: 'subnet-3a', zone: 'z3', freeIps: 5 },
  { subnetId: 'subnet-4a', zone: 'z4', freeIps: 9 },
  { subnetId: 'subnet-3b', zone: 'z3', freeIps: 7 },
  { subnetId: 'subnet-3x', zone: 'z3', freeIps: 99 },
].map((one) => ({ ...one, cidr: '10.0.0.0/24', vpcId: 'vpc-a', isBlocked: false }));
const FACTS: ChoiceFacts = {
  configured: ['subnet-3b', 'subnet-4a', 'subnet-3a', 'subnet-3x'],
  onlyNominated: new Set(['subnet-3x']),
  ofConfig: undefined,
  ofLabel: [],
  zone: 'z3',
  vpcId: 'vpc-a',
  find: (id) => SUBNETS.find(({ subnetId }) => subnetId === id),
};
const choices = test.macro(
  (t, change: Partial<ChoiceFacts>, want: readonly string[], unknown: readonly string[] = []) => {
    const decided = decideChoices({ ...FACTS, ...change });
    t.deepEqual(
      decided.subnets.map(({ subnetId }) => subnetId),
      want,
    );
    t.deepEqual(decided.unknown, unknown);
  },
);
test("decideChoices: takes the cluster's of the zone, without those that must be named", choices, {}, [
  'subnet-3b',
  'subnet-3a',
]);
test('decideChoices: takes those of the label only', choices, { ofLabel: ['subnet-3a'] }, ['subnet-3a']);
test(
  'decideChoices: takes those of the spec before the label',
  choices,
  { ofLabel: ['subnet-3a'], ofConfig: ['subnet-3b'] },
  ['subnet-3b'],
);
test('decideChoices: takes one that must be named when it is', choices, { ofLabel: ['subnet-3x'] }, ['subnet-3x']);
test('decideChoices: takes none of another zone, named or not', choices, { ofLabel: ['subnet-4a'] }, []);
test('decideChoices: takes none of another VPC', choices, { vpcId: 'vpc-b' }, []);
test(
  'decideChoices: tells what is named and not known',
  choices,
  { ofConfig: ['subnet-3a', 'subnet-zz'] },
  ['subnet-3a'],
  ['subnet-zz'],
);

test('renderConfigProblems: says what stays in force', (t) => {
  const fault = { path: 'data.X', expected: 'a', got: '"b"' };
  t.deepEqual(renderConfigProblems([fault], ['subnet-zz'], { subnetIds: ['subnet-aaaa'], isKept: true }), [
    { reason: 'ConfigInvalid', message: 'data.X: expected a, got "b"; subnet-aaaa stay in force' },
    { reason: 'SubnetUnknown', message: 'the cloud has no subnet-zz; subnet-aaaa stay in force' },
  ]);
  t.deepEqual(renderConfigProblems([], [], { subnetIds: [], isKept: false }), []);
});

test('renderConfigProblems: says that the rest is used only where there is a rest, else what to set', (t) => {
  const textOf = (subnetIds: readonly string[], vpcIds?: readonly string[]) =>
    renderConfigProblems([], ['subnet-zz'], { subnetIds, isKept: false }, vpcIds).map(({ message }) => message);
  t.deepEqual(textOf(['subnet-aaaa']), ['the cloud has no subnet-zz; the rest is used']);
  t.deepEqual(textOf([], ['vpc-a']), [
    'vpc-a has no subnet-zz; no subnet is left, and nodes that name none get no addresses: set data.TKE_ENI_IPAMD_SUBNET_ID to ids of subnets of vpc-a',
  ]);
});
