import { readFileSync } from 'node:fs';
import test from 'ava';
import { parse } from 'yaml';
import { supplyOfConfig } from '../../../agent/supply/supply-of-config.ts';
import { nodeEniConfig } from '../../../crd/node-eni-config.ts';
import { decodeOrThrow } from '../../../runtime/decode.ts';

const EXAMPLE = readFileSync(new URL('../../../conf/node.example.yaml', import.meta.url), 'utf8');

function supplyOf(change: (object: ReturnType<typeof parse>) => void = () => {}) {
  const object = parse(EXAMPLE);
  change(object);
  return supplyOfConfig(decodeOrThrow(nodeEniConfig, object, 'x'));
}

test('supplyOfConfig: turns the example into ENIs with both families and addresses with both partners', (t) => {
  const supply = supplyOf();
  t.like(supply, { nodeName: '10.0.0.10', epoch: 1, warm: { min: 5, max: 5, limit: 27 } });
  const [first, second] = supply.enis;
  t.deepEqual(first?.primary, [
    { ip: '10.0.8.4', family: 4, gateway: '10.0.8.1', subnetCidr: '10.0.8.0/22' },
    { ip: 'fd00:8::4', family: 6, gateway: 'fd00:8::1', subnetCidr: 'fd00:8::/64' },
  ]);
  t.deepEqual(
    first?.addresses.map(({ ip, pairedIp }) => [ip, pairedIp]),
    [
      ['10.0.8.17', 'fd00:8::17'],
      ['10.0.8.18', 'fd00:8::18'],
      ['fd00:8::17', '10.0.8.17'],
      ['fd00:8::18', '10.0.8.18'],
    ],
  );
  t.deepEqual(
    second?.addresses.map(({ state }) => state),
    ['assigned', 'releasing'],
  );
});

test('supplyOfConfig: has no ENI, epoch 0 and the default targets when nothing is said', (t) => {
  const supply = supplyOf((object) => {
    delete object.spec;
    delete object.status;
  });
  t.deepEqual(supply, { nodeName: '10.0.0.10', epoch: 0, enis: [], warm: { min: 5, max: 5 } });
});

const PREFIX = 'tke.cloud.tencent.com/route-eni-ip-';
const warm = test.macro((t, spec: object, annotations: object, want: { min: number; max: number }) => {
  const supply = supplyOf((object) => {
    object.spec = spec;
    object.metadata.annotations = annotations;
  });
  t.deepEqual(supply.warm, want);
});
test(
  'warm targets: annotations go before the spec',
  warm,
  { routeENIIPMinWarmTarget: 1, routeENIIPMaxWarmTarget: 2 },
  { [`${PREFIX}min-warm-target`]: '3', [`${PREFIX}max-warm-target`]: '9' },
  { min: 3, max: 9 },
);
test(
  'warm targets: a minimum above the default lifts the maximum',
  warm,
  { routeENIIPMinWarmTarget: 8 },
  {},
  { min: 8, max: 8 },
);
test(
  'warm targets: a maximum below the default lowers the minimum',
  warm,
  { routeENIIPMaxWarmTarget: 2 },
  {},
  { min: 2, max: 2 },
);
test(
  'warm targets: none at all is possible',
  warm,
  { routeENIIPMinWarmTarget: 0, routeENIIPMaxWarmTarget: 0 },
  {},
  { min: 0, max: 0 },
);

test('supplyOfConfig: takes marks over, whether addresses may be kept, and how many places they have', (t) => {
  const claim = { namespace: 'ns', name: 'web-0', uid: 'u1' };
  const supply = supplyOf((object) => {
    object.spec.enableStaticIP = true;
    object.status.staticRouteENIIPs = 3;
    object.status.eniInfos[0].addresses[0].claim = claim;
    object.status.eniInfos[0].addresses[1].claim = { namespace: 'ns', name: 'web-1' };
  });
  t.like(supply, { isStaticIpEnabled: true, warm: { limit: 27, keptPlaces: 3 } });
  t.deepEqual(
    supply.enis[0]?.addresses.map((address) => address.claim),
    [claim, { namespace: 'ns', name: 'web-1' }, undefined, undefined],
  );
});

test('supplyOfConfig: a mark that names nobody is a fault of the whole object', (t) => {
  const change = (object: ReturnType<typeof parse>) => {
    object.status.eniInfos[0].addresses[0].claim = { namespace: 'ns' };
  };
  t.throws(() => supplyOf(change), { message: /status\.eniInfos\[0\]\.addresses\[0\]\.claim\.name/ });
});
