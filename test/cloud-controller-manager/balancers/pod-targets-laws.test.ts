import test from 'ava';
import fc from 'fast-check';
import type { BackendPod } from '../../../cloud-controller-manager/backends/backend-pod.ts';
import type { EndpointSlice } from '../../../cloud-controller-manager/backends/endpoint-slice.ts';
import type { DesiredLoadBalancer } from '../../../cloud-controller-manager/balancers/desired-load-balancer.ts';
import { diffLoadBalancer } from '../../../cloud-controller-manager/balancers/diff-load-balancer.ts';
import type { ObservedLoadBalancer } from '../../../cloud-controller-manager/balancers/observed-load-balancer.ts';
import { planPodTargets } from '../../../cloud-controller-manager/balancers/plan-pod-targets.ts';
import { assertLaw } from '../../support/law.ts';
import { applyStep } from './apply-steps.ts';

const NAME = 'tke-eni-1';
const MOST = 6;
const PORT = { name: '', protocol: 'TCP', port: 80 } as const;

/** A Pod of the Service at some moment, with what its slice says. */
const podArb = fc.record({
  host: fc.integer({ min: 1, max: 9 }),
  port: fc.constantFrom(8_080, 8_080, 8_081),
  // A slice has the name that a port had before.
  hasPort: fc.constantFrom(true, true, true, false),
  isKnown: fc.constantFrom(true, true, true, false),
  isReady: fc.constantFrom(true, true, false),
  isTerminating: fc.constantFrom(false, false, true),
  isLeaving: fc.constantFrom(false, false, true),
  hasGate: fc.boolean(),
  areContainersReady: fc.boolean(),
  isSilent: fc.constantFrom(false, false, true),
});
const momentArb = fc.record({
  pods: fc.uniqueArray(podArb, { selector: ({ host }) => host, maxLength: 8 }),
  max: fc.constantFrom(undefined, MOST, 3),
});
type Moment = typeof momentArb extends fc.Arbitrary<infer T> ? T : never;

function desiredAt({ pods, max }: Moment): DesiredLoadBalancer {
  const known = new Map(
    pods
      .filter(({ isKnown }) => isKnown)
      .map(({ host, isLeaving, hasGate, areContainersReady, isSilent }): [string, BackendPod] => [
        `d/p${host}`,
        {
          namespace: 'd',
          name: `p${host}`,
          uid: `u${host}`,
          nodeName: isSilent ? 'silent' : 'heard',
          ips: [`10.0.1.${host}`],
          isLeaving,
          network: 'eni',
          areContainersReady,
          areOtherGatesTrue: true,
          ...(hasGate ? { gate: { status: '', reason: '', message: '' } } : {}),
        },
      ]),
  );
  const slices = pods.map(({ host, port, hasPort, isReady, isTerminating }): EndpointSlice => {
    const endpoint = { ip: `10.0.1.${host}`, isReady: isReady && !isTerminating, isTerminating, pod: `d/p${host}` };
    return {
      service: 'd/web',
      ports: [{ name: hasPort ? PORT.name : 'former', protocol: 'TCP', port }],
      endpoints: [endpoint],
    };
  });
  const { targetsOf, keptIpsOf } = planPodTargets(
    {
      slices,
      podOf: (key) => known.get(key),
      nodeOf: (name) => ({ zone: 'z', podCidrs: [], hasNetwork: true, isSilent: name === 'silent' }),
      keepsRoutes: false,
    },
    {},
    [PORT],
    max,
  );
  const targets = targetsOf(PORT) ?? [];
  const keptIps = keptIpsOf?.(PORT) ?? [];
  return {
    source: { kind: 'own', spec: { type: 'OPEN', name: 'n', vpcId: 'vpc-1' } },
    listenerName: NAME,
    listeners: [
      { protocol: 'TCP', port: 80, settings: {}, targets, keptIps, ...(max === undefined ? {} : { maxTargets: max }) },
    ],
    allowsAddressChange: false,
  };
}

type Weights = ReadonlyMap<string, number>;

function weightsOf(state: ObservedLoadBalancer | undefined): Weights {
  return new Map(state?.targets.map(({ ip, port, weight }) => [`${ip}:${port}`, weight]));
}

function wantedOf({ listeners: [listener] }: DesiredLoadBalancer): ReadonlyMap<string, number | 'asIs'> {
  return new Map(listener?.targets?.map(({ ip, port, weight }) => [`${ip}:${port}`, weight]));
}

/** Whether a target stays as it is because its slice lacks the port. */
function isKept({ listeners: [listener] }: DesiredLoadBalancer, id: string): boolean {
  return listener?.keptIps?.some((ip) => id.startsWith(`${ip}:`)) ?? false;
}

/** Compares and changes, as often as something is left to do. Targets with weight 0 had their time at each second round. */
function settle(
  start: ObservedLoadBalancer | undefined,
  desired: DesiredLoadBalancer,
  onStep: (before: Weights, after: Weights, count: number) => void,
): ObservedLoadBalancer | undefined {
  let state = start;
  for (let round = 0; round < 20; round++) {
    const { steps } = diffLoadBalancer(desired, state, ({ weight }) => weight === 0 && round % 2 === 1);
    if (steps.length === 0 && round % 2 === 1) return state;
    for (const step of steps) {
      const before = weightsOf(state);
      state = applyStep(state, step, NAME);
      onStep(before, weightsOf(state), state?.targets.length ?? 0);
    }
  }
  throw new Error('it never ends');
}

const servingOf = (weights: Weights): number => [...weights.values()].filter((weight) => weight > 0).length;

test('at no step the last target that serves goes while an endpoint is ready, and one that stays keeps its weight', (t) =>
  assertLaw(t, (inner) =>
    fc.property(fc.array(momentArb, { minLength: 2, maxLength: 4 }), (moments) => {
      let state: ObservedLoadBalancer | undefined;
      for (const moment of moments) {
        const desired = desiredAt(moment);
        const wanted = wantedOf(desired);
        const isServable = [...wanted.values()].some((weight) => weight !== 'asIs' && weight > 0);
        const wasServed = servingOf(weightsOf(state)) > 0;
        const most = moment.max ?? Number.POSITIVE_INFINITY;
        state = settle(state, desired, (before, after, count) => {
          if (isServable && (wasServed || servingOf(before) > 0)) inner.true(servingOf(after) > 0, 'nothing serves');
          for (const [id, weight] of before) {
            const want = wanted.get(id);
            if (want === 'asIs' || (weight > 0 && isKept(desired, id))) inner.is(after.get(id), weight, id);
            else if (want !== undefined && want > 0 && weight === want) inner.is(after.get(id), weight, id);
            if (!after.has(id)) inner.is(weight, 0, `${id} is deregistered with a weight`);
          }
          inner.true(count <= Math.max(most, before.size), 'more than the quota');
        });
        const after = weightsOf(state);
        // One that stays as it is, or drains as long as its endpoint is there, counts against the quota.
        const staysToo = [...after.keys()].some((id) => !(Number(wanted.get(id)) > 0));
        const isFull = after.size >= most && staysToo;
        for (const [id, weight] of wanted) {
          if (weight === 'asIs' || weight === 0 || (isFull && !after.has(id))) continue;
          inner.is(after.get(id), weight, id);
        }
        for (const id of after.keys()) inner.true(wanted.has(id) || isKept(desired, id), `${id} is not asked for`);
      }
    }),
  ));

test('what ends, is not ready or not known is never made a target', (t) =>
  assertLaw(t, (inner) =>
    fc.property(momentArb, (moment) => {
      const bound = weightsOf(settle(undefined, desiredAt(moment), () => undefined));
      for (const { host, port, isTerminating, isLeaving, isKnown } of moment.pods)
        if (isTerminating || isLeaving || !isKnown) inner.false(bound.has(`10.0.1.${host}:${port}`));
    }),
  ));

test('what is not asked for any more serves until another one is known to serve', (t) =>
  assertLaw(t, (inner) =>
    fc.property(momentArb, momentArb, (before, moment) => {
      const start = settle(undefined, desiredAt({ ...before, max: undefined }), () => undefined);
      const desired = desiredAt({ ...moment, max: undefined });
      const wanted = wantedOf(desired);
      const isServable = [...wanted.values()].some((weight) => weight !== 'asIs' && weight > 0);
      let state = start;
      for (const step of diffLoadBalancer(
        desired,
        start,
        () => true,
        () => false,
      ).steps) {
        state = applyStep(state, step, NAME);
      }
      const after = weightsOf(state);
      for (const [id, weight] of weightsOf(start))
        if (isServable && weight > 0 && !wanted.has(id)) inner.is(after.get(id), weight, id);
      for (const [id, weight] of wanted) {
        if (weight === 0) inner.is(after.get(id) ?? 0, 0, `${id} ends by itself`);
        else if (weight !== 'asIs') inner.is(after.get(id), weight, id);
      }
      const { held = [] } = diffLoadBalancer(
        desired,
        state,
        () => true,
        () => false,
      );
      const rest = diffLoadBalancer(
        desired,
        state,
        () => true,
        () => true,
      );
      inner.is(rest.held, undefined);
      if (held.length > 0) inner.true(rest.steps.some(({ kind }) => kind === 'setWeights'));
    }),
  ));
