import { readFileSync } from 'node:fs';
import test from 'ava';
import fc from 'fast-check';
import { parse } from 'yaml';
import { NODE_ENI_CONFIG_ANNOTATION as NAME } from '../../crd/names.ts';
import { nodeEniConfig } from '../../crd/node-eni-config.ts';
import { readNodeEniConfig } from '../../crd/read-node-eni-config.ts';
import { decodeOrThrow } from '../../runtime/decode.ts';
import { assertLaw } from '../support/law.ts';

const EXAMPLE = readFileSync(new URL('../../conf/node.example.yaml', import.meta.url), 'utf8');

function readChanged(change: (object: ReturnType<typeof parse>) => void) {
  const object = parse(EXAMPLE);
  change(object);
  return readNodeEniConfig(object);
}

test('readNodeEniConfig: reads a good object as the strict decoder does', (t) => {
  const object = parse(EXAMPLE);
  t.deepEqual(readNodeEniConfig(object), {
    config: decodeOrThrow(nodeEniConfig, object, 'x'),
    faults: [],
    damaged: new Set(),
  });
});

test('readNodeEniConfig: names every fault and reads the rest of an object edited into nonsense', (t) => {
  const read = readChanged((object) => {
    object.metadata.annotations = { [NAME.routeMaxAttach]: 'two' };
    object.spec.maxRouteENI = 'three';
    object.spec.subnetIDs = ['subnet-a', 7];
    object.spec.enableQuickRelease = 'perhaps';
    object.status.eniInfos[1].mac = 'none';
    object.status.intents = 'gone';
  });
  t.deepEqual(
    read?.faults.map(({ path }) => path),
    ['spec.maxRouteENI', 'spec.enableQuickRelease', 'spec.subnetIDs[1]', 'status.eniInfos[1].mac', 'status.intents'],
  );
  t.deepEqual(
    read?.damaged,
    new Set(['spec.maxRouteENI', 'spec.enableQuickRelease', 'spec.subnetIDs', 'status.eniInfos', 'status.intents']),
  );
  t.deepEqual(read?.config.spec, {
    maxIPPerENI: 9,
    routeENIIPMinWarmTarget: 5,
    routeENIIPMaxWarmTarget: 5,
    subnetIDs: ['subnet-a'],
  });
  t.deepEqual(
    read?.config.status?.eniInfos?.map(({ eniID }) => eniID),
    ['eni-6cjx2o4a'],
  );
  t.is(read?.config.status?.supplyEpoch, 1);
  t.deepEqual(
    read?.config.annotationFaults.map(({ path, got }) => `${path} ${got}`),
    [`metadata.annotations.${NAME.routeMaxAttach} "two"`],
  );
});

test('readNodeEniConfig: takes warm targets that contradict each other for none', (t) => {
  const read = readChanged((object) => {
    object.spec.routeENIIPMinWarmTarget = 9;
  });
  t.deepEqual(read?.config.spec, { maxRouteENI: 3, maxIPPerENI: 9 });
  t.deepEqual(read?.damaged, new Set(['spec.routeENIIPMaxWarmTarget']));
});

test('readNodeEniConfig: marks a list with one address twice as damaged', (t) => {
  const read = readChanged((object) => {
    object.status.eniInfos[0].addresses[1].ip = '10.0.9.20';
  });
  t.deepEqual(read?.damaged, new Set(['status.eniInfos']));
});

test('readNodeEniConfig: reads what is no spec and no status', (t) => {
  const read = readChanged((object) => {
    object.spec = 'x';
    object.status = [];
  });
  t.deepEqual([read?.config.spec, read?.config.status], [undefined, undefined]);
  t.deepEqual(read?.damaged, new Set(['spec', 'status']));
});

test('readNodeEniConfig: never fails, and finds a fault where the strict decoder does', async (t) => {
  await assertLaw(t, () =>
    fc.property(fc.jsonValue(), fc.constantFrom('spec', 'status', 'metadata', 'apiVersion'), (value, key) => {
      const object = { ...parse(EXAMPLE), [key]: value };
      const read = readNodeEniConfig(object);
      let isGood = true;
      try {
        decodeOrThrow(nodeEniConfig, object, 'x');
      } catch {
        isGood = false;
      }
      return (read !== undefined && read.faults.length === 0) === isGood;
    }),
  );
});
