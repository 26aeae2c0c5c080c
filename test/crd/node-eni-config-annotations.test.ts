import test from 'ava';
import fc from 'fast-check';
import { NODE_ENI_CONFIG_ANNOTATION as NAME } from '../../crd/names.ts';
import {
  NO_USAGE,
  type NodeSettings,
  type NodeUsage,
  readNodeSettings,
} from '../../crd/node-eni-config-annotations.ts';
import { nodeUsageOf } from '../../crd/node-usage.ts';
import { assertLaw } from '../support/law.ts';

type Case = {
  readonly annotations: Readonly<Record<string, unknown>>;
  readonly usage?: NodeUsage;
  readonly settings: NodeSettings;
  readonly faults?: readonly string[];
};

const reads = test.macro((t, { annotations, usage, settings, faults = [] }: Case) => {
  const read = readNodeSettings(annotations, usage);
  t.deepEqual(read.settings, settings);
  t.deepEqual(
    read.faults.map(({ path, expected, got }) => `${path.replace('metadata.annotations.', '')}: ${expected}; ${got}`),
    faults,
  );
});

test('readNodeSettings: reads all seven', reads, {
  annotations: {
    [NAME.routeMinWarm]: '0',
    [NAME.routeMaxWarm]: '12',
    [NAME.directMinWarm]: '1',
    [NAME.directMaxWarm]: '1',
    [NAME.routeMaxAttach]: '2',
    [NAME.maxIpPerEni]: '9',
    [NAME.directMaxAttach]: '0',
    'other.io/x': 'y',
  },
  settings: {
    routeWarm: { min: 0, max: 12 },
    directWarm: { min: 1, max: 1 },
    routeMaxAttach: 2,
    maxIpPerEni: 9,
    directMaxAttach: 0,
  },
});
test('readNodeSettings: ignores half a pair and names what is missing', reads, {
  annotations: { [NAME.routeMinWarm]: '3', [NAME.directMaxWarm]: '3' },
  settings: {},
  faults: [
    `${NAME.routeMaxWarm}: a value, as ${NAME.routeMinWarm} is there; nothing`,
    `${NAME.directMinWarm}: a value, as ${NAME.directMaxWarm} is there; nothing`,
  ],
});
test('readNodeSettings: ignores a minimum above the maximum', reads, {
  annotations: { [NAME.routeMinWarm]: '6', [NAME.routeMaxWarm]: '5' },
  settings: {},
  faults: [`${NAME.routeMaxWarm}: a number not below the minimum, 6; "5"`],
});
test('readNodeSettings: ignores a pair of which one is malformed, and keeps the rest', reads, {
  annotations: { [NAME.routeMinWarm]: '-1', [NAME.routeMaxWarm]: '5', [NAME.routeMaxAttach]: '2' },
  settings: { routeMaxAttach: 2 },
  faults: [`${NAME.routeMinWarm}: a whole number from 0 to 262144 in quotes; "-1"`],
});
test('readNodeSettings: names every malformed value', reads, {
  annotations: { [NAME.routeMaxAttach]: '65', [NAME.maxIpPerEni]: 'many', [NAME.directMaxAttach]: 2 },
  settings: {},
  faults: [
    `${NAME.routeMaxAttach}: a whole number from 0 to 64 in quotes; "65"`,
    `${NAME.maxIpPerEni}: a whole number from 0 to 4096 in quotes; "many"`,
    `${NAME.directMaxAttach}: a whole number from 0 to 64 in quotes; 2`,
  ],
});
test('readNodeSettings: refuses a maximum below what is in use', reads, {
  annotations: { [NAME.routeMaxAttach]: '1', [NAME.maxIpPerEni]: '4', [NAME.directMaxAttach]: '3' },
  usage: { routeEnis: 2, ipsOnFullestEni: 4, exclusiveEnis: 4 },
  settings: { maxIpPerEni: 4 },
  faults: [
    `${NAME.routeMaxAttach}: a number not below what is in use, 2; "1"`,
    `${NAME.directMaxAttach}: a number not below what is in use, 4; "3"`,
  ],
});

test('readNodeSettings: never fails, and accepts only pairs in order, whatever is there', async (t) => {
  const name = fc.constantFrom(...Object.values(NAME));
  const value = fc.oneof(fc.nat(99).map(String), fc.string(), fc.jsonValue());
  await assertLaw(t, () =>
    fc.property(fc.oneof(fc.dictionary(name, value), fc.jsonValue()), (annotations) => {
      const { settings } = readNodeSettings(annotations, NO_USAGE);
      return [settings.routeWarm, settings.directWarm].every((pair) => (pair?.min ?? 0) <= (pair?.max ?? 0));
    }),
  );
});

test('nodeUsageOf: counts shared ENIs with an address in use, the fullest of them, and exclusive ENIs', (t) => {
  const address = (ip: string) => ({ ip, assignmentID: 'a', state: 'Assigned' as const });
  const eni = { mac: '20:90:6f:00:00:01', state: 'Attached' as const };
  const status = {
    eniInfos: [
      { ...eni, eniID: 'eni-1', addresses: [address('10.0.0.1'), address('10.0.0.2')] },
      { ...eni, eniID: 'eni-2', addresses: [address('10.0.0.3')] },
      { ...eni, eniID: 'eni-3', addresses: [address('10.0.0.4'), address('10.0.0.5')] },
      { ...eni, eniID: 'eni-4', mode: 'direct-eni' as const, primaryIP: '10.0.0.6' },
    ],
  };
  const used = new Set(['10.0.0.3', '10.0.0.4', '10.0.0.5', '10.0.0.6']);
  t.deepEqual(
    nodeUsageOf(status, (ip) => used.has(ip)),
    { routeEnis: 2, ipsOnFullestEni: 2, exclusiveEnis: 1 },
  );
  t.deepEqual(
    nodeUsageOf(undefined, () => true),
    NO_USAGE,
  );
});
