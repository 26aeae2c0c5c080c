import test from 'ava';
import type { NodeSettings } from '../../crd/node-eni-config-annotations.ts';
import type { NodeEniConfigSpec } from '../../crd/node-eni-config-fields.ts';
import { nodeLimitsOf } from '../../crd/node-limits.ts';

const SPEC: NodeEniConfigSpec = { maxRouteENI: 3, maxIPPerENI: 9, maxDirectENI: 4 };
const LIMITS = { routeEnis: 3, ipsPerEni: 9, exclusiveEnis: 4 };
const HIGH: NodeSettings = { routeMaxAttach: 20, maxIpPerEni: 30, directMaxAttach: 9 };
const LOW: NodeSettings = { routeMaxAttach: 1, maxIpPerEni: 2, directMaxAttach: 0 };

for (const { title, spec, settings, limits } of [
  { title: 'takes the spec without annotations', spec: SPEC, settings: {}, limits: LIMITS },
  {
    title: 'is not raised by annotations above what the instance may have',
    spec: SPEC,
    settings: HIGH,
    limits: LIMITS,
  },
  {
    title: 'is lowered by annotations',
    spec: SPEC,
    settings: LOW,
    limits: { routeEnis: 1, ipsPerEni: 2, exclusiveEnis: 0 },
  },
  { title: 'allows no exclusive ENI without a spec', spec: undefined, settings: {}, limits: { exclusiveEnis: 0 } },
  {
    title: 'allows no exclusive ENI by an annotation alone',
    spec: undefined,
    settings: HIGH,
    limits: { routeEnis: 20, ipsPerEni: 30, exclusiveEnis: 0 },
  },
]) {
  test(`nodeLimitsOf: ${title}`, (t) => {
    t.deepEqual(nodeLimitsOf(spec, settings), limits);
  });
}
