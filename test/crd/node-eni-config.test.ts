import { readFileSync } from 'node:fs';
import test from 'ava';
import fc from 'fast-check';
import { parse } from 'yaml';
import { nodeEniConfig, unknownFields, withAgentSpec } from '../../crd/node-eni-config.ts';
import { ConfigError, decodeOrThrow } from '../../runtime/decode.ts';
import { assertLaw } from '../support/law.ts';

const EXAMPLE = readFileSync(new URL('../../conf/node.example.yaml', import.meta.url), 'utf8');

/** A fresh, valid object, changed by `change`. */
function decodeChanged(change: (object: ReturnType<typeof parse>) => void) {
  const object = parse(EXAMPLE);
  change(object);
  return decodeOrThrow(nodeEniConfig, object, 'node.yaml');
}

function faultsOf(run: () => unknown): readonly string[] {
  try {
    run();
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.faults.map((fault) => `${fault.path}: ${fault.expected}; ${fault.got}`);
  }
}

test('nodeEniConfig: reads the example', (t) => {
  const config = decodeChanged(() => {});
  t.is(config.metadata.name, '10.0.0.10');
  t.is(config.status?.eniInfos?.[0]?.addresses?.length, 4);
  t.deepEqual(unknownFields(config), []);
});

test('nodeEniConfig: reads an object without spec and status, and nulls', (t) => {
  const config = decodeChanged((object) => {
    object.spec = null;
    object.status = { eniInfos: null };
  });
  t.is(config.spec, undefined);
  t.is(config.status?.eniInfos, undefined);
});

test('nodeEniConfig: writes MAC and IPv6 addresses in one spelling', (t) => {
  const config = decodeChanged((object) => {
    object.status.eniInfos[0].mac = '20:90:6F:0A:00:01';
    object.status.eniInfos[0].primaryIPv6 = 'FD00:8:0::0004';
  });
  t.like(config.status?.eniInfos?.[0], { mac: '20:90:6f:0a:00:01', primaryIPv6: 'fd00:8::4' });
});

const refuses = test.macro((t, change: (object: ReturnType<typeof parse>) => void, want: readonly string[]) =>
  t.deepEqual(
    faultsOf(() => decodeChanged(change)),
    want,
  ),
);

test('nodeEniConfig: refuses another kind', refuses, (o) => (o.kind = 'NodeEniConfig'), [
  'kind: one of "NodeENIConfig"; "NodeEniConfig"',
]);
test('nodeEniConfig: refuses another version', refuses, (o) => (o.apiVersion = 'v1'), [
  'apiVersion: one of "networking.tke.cloud.tencent.com/v1"; "v1"',
]);
test('nodeEniConfig: refuses a missing name', refuses, (o) => delete o.metadata.name, [
  'metadata.name: a value; nothing',
]);
test('nodeEniConfig: refuses a number as MAC', refuses, (o) => (o.status.eniInfos[0].mac = 12), [
  'status.eniInfos[0].mac: a MAC address such as 20:90:6f:12:34:56; 12',
]);
test(
  'nodeEniConfig: refuses an address twice on the node',
  refuses,
  (o) => (o.status.eniInfos[0].addresses[1].ip = '10.0.9.20'),
  [
    'status.eniInfos[1].addresses[0].ip: an address that is not at status.eniInfos[0].addresses[1].ip already; "10.0.9.20"',
  ],
);
test(
  "nodeEniConfig: refuses the ENI's own address for Pods",
  refuses,
  (o) => (o.status.eniInfos[1].addresses[0].ip = '10.0.9.5'),
  ['status.eniInfos[1].addresses[0].ip: an address that is not at status.eniInfos[1].primaryIP already; "10.0.9.5"'],
);
test(
  'nodeEniConfig: refuses an address outside the subnet',
  refuses,
  (o) => (o.status.eniInfos[1].addresses[0].ip = '10.0.12.1'),
  ['status.eniInfos[1].addresses[0].ip: an address in subnetCIDR 10.0.8.0/22; "10.0.12.1"'],
);
test(
  'nodeEniConfig: refuses an IPv6 address on an IPv4 ENI',
  refuses,
  (o) => (o.status.eniInfos[1].addresses[0].ip = 'fd00:8::99'),
  ['status.eniInfos[1].addresses[0].ip: no IPv6 address, as the ENI has no subnetIPv6CIDR; "fd00:8::99"'],
);
test('nodeEniConfig: refuses half a family', refuses, (o) => delete o.status.eniInfos[1].gateway, [
  'status.eniInfos[1].gateway: a value, as primaryIP and subnetCIDR is there; nothing',
]);
test(
  'nodeEniConfig: refuses a gateway outside the subnet',
  refuses,
  (o) => (o.status.eniInfos[1].gateway = '10.9.0.1'),
  ['status.eniInfos[1].gateway: an address in subnetCIDR 10.0.8.0/22; "10.9.0.1"'],
);
test(
  'nodeEniConfig: refuses a subnet with host bits',
  refuses,
  (o) => (o.status.eniInfos[1].subnetCIDR = '10.0.8.1/22'),
  ['status.eniInfos[1].subnetCIDR: an IPv4 network such as 10.0.8.0/22; "10.0.8.1/22"'],
);
test('nodeEniConfig: refuses one ENI twice', refuses, (o) => (o.status.eniInfos[1].eniID = 'eni-6cjx2o4a'), [
  'status.eniInfos[1].eniID: another than status.eniInfos[0]; "eni-6cjx2o4a"',
]);
test('nodeEniConfig: refuses one MAC twice', refuses, (o) => (o.status.eniInfos[1].mac = '20:90:6F:0A:00:01'), [
  'status.eniInfos[1].mac: another than status.eniInfos[0]; "20:90:6f:0a:00:01"',
]);
test(
  'nodeEniConfig: refuses a pair of one family',
  refuses,
  (o) => (o.status.eniInfos[0].addresses[0].pairedIP = '10.0.8.18'),
  ['status.eniInfos[0].addresses[0].pairedIP: an address of the other family on the same ENI; "10.0.8.18"'],
);
test('nodeEniConfig: refuses a minimum above the maximum', refuses, (o) => (o.spec.routeENIIPMaxWarmTarget = 4), [
  'spec.routeENIIPMaxWarmTarget: a number not below routeENIIPMinWarmTarget, 5; 4',
]);

test('nodeEniConfig: reads an object with a malformed annotation, and tells it apart', (t) => {
  const pair = {
    min: 'tke.cloud.tencent.com/route-eni-ip-min-warm-target',
    max: 'tke.cloud.tencent.com/route-eni-ip-max-warm-target',
  };
  const config = decodeChanged((object) => {
    object.metadata.annotations = { [pair.min]: 'few', [pair.max]: '5' };
  });
  t.deepEqual(config.metadata.annotations, {});
  t.deepEqual(config.settings, {});
  t.deepEqual(
    config.annotationFaults.map(({ path, got }) => `${path} ${got}`),
    [`metadata.annotations.${pair.min} "few"`],
  );
});

test('nodeEniConfig: names every fault at once', (t) => {
  const faults = faultsOf(() =>
    decodeChanged((object) => {
      object.kind = 'x';
      object.spec.maxRouteENI = '3';
      object.status.supplyEpoch = -1;
      object.status.eniInfos[0].state = 'attached';
      delete object.status.eniInfos[1].addresses[0].assignmentID;
    }),
  );
  t.deepEqual(
    faults.map((fault) => fault.split(':')[0]),
    [
      'kind',
      'spec.maxRouteENI',
      'status.supplyEpoch',
      'status.eniInfos[0].state',
      'status.eniInfos[1].addresses[0].assignmentID',
    ],
  );
});

test('unknownFields: finds what may be misspelt, at every level', (t) => {
  const config = decodeChanged((object) => {
    object.extra = 1;
    object.spec.maxRouteEni = 3;
    object.status.eniInfos[0].drainig = true;
    object.status.eniInfos[1].addresses[0].phase = 'x';
  });
  t.deepEqual(unknownFields(config), [
    'extra',
    'spec.maxRouteEni',
    'status.eniInfos[0].drainig',
    'status.eniInfos[1].addresses[0].phase',
  ]);
});

test('withAgentSpec: changes the three fields of the agent and keeps every other, known or not', (t) => {
  const config = decodeChanged((object) => {
    object.spec.fromTheFuture = { a: [1] };
    object.spec.desiredRouteENIIP = 1;
    object.metadata.finalizers = ['x'];
  });
  const own = {
    desiredRouteENIIP: 8,
    releasableIPs: [{ ip: '10.0.8.17', assignmentID: 'ipa-0001' }],
    observedSupplyEpoch: 1,
  };
  const before = structuredClone(config.object);
  const written = withAgentSpec(config, own);
  t.deepEqual(written, { ...before, spec: { ...(before['spec'] as object), ...own } });
  t.deepEqual(config.object, before);
});

test('nodeEniConfig: reads any JSON or refuses it with faults, and never fails otherwise', async (t) => {
  await assertLaw(t, () =>
    fc.property(fc.jsonValue(), fc.constantFrom('spec', 'status', 'metadata', 'apiVersion'), (value, key) => {
      const object = { ...parse(EXAMPLE), [key]: value };
      const faults = faultsOf(() => decodeOrThrow(nodeEniConfig, object, 'x'));
      return faults.every((fault) => fault.includes(': '));
    }),
  );
});
