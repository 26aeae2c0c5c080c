import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import type {
  DesiredListener,
  DesiredLoadBalancer,
} from '../../../cloud-controller-manager/balancers/desired-load-balancer.ts';
import { diffLoadBalancer, releaseSteps } from '../../../cloud-controller-manager/balancers/diff-load-balancer.ts';
import type { LoadBalancerStep } from '../../../cloud-controller-manager/balancers/load-balancer-step.ts';
import type { ObservedLoadBalancer } from '../../../cloud-controller-manager/balancers/observed-load-balancer.ts';
import { listenerKeyOf } from '../../../cloud-controller-manager/balancers/target-place.ts';
import { assertLaw } from '../../support/law.ts';
import { applyStep, listener, made, target } from './apply-steps.ts';

const OURS = 'tke-eni-1';
const drained = (): boolean => true;

const ipArb = fc.integer({ min: 1, max: 6 }).map((host) => `10.0.1.${host}`);
const listenerArb: fc.Arbitrary<DesiredListener> = fc.record({
  protocol: fc.constantFrom('TCP' as const, 'UDP' as const),
  port: fc.integer({ min: 80, max: 84 }),
  settings: fc.record({
    scheduler: fc.constant('WRR'),
    sessionSeconds: fc.constantFrom(0, 60),
    healthCheck: fc.constantFrom(
      { isOn: false },
      { isOn: true, kind: 'TCP', checkPort: 'target' as const },
      { isOn: true, kind: 'HTTP', checkPort: 30_001, http: { path: '/healthz', codes: 2 } },
    ),
  }),
  targets: fc.uniqueArray(
    fc.record({ ip: ipArb, port: fc.constantFrom(30_000, 30_001), weight: fc.constantFrom(0, 10, 10, 10) }),
    { selector: ({ ip, port }) => `${ip}:${port}`, maxLength: 6 },
  ),
});

const desiredArb: fc.Arbitrary<DesiredLoadBalancer> = fc
  .record({
    isInternal: fc.boolean(),
    groups: fc.constantFrom(undefined, [], ['sg-1'], ['sg-1', 'sg-2']),
    passes: fc.constantFrom(undefined, true, false),
    listeners: fc.uniqueArray(listenerArb, { selector: ({ protocol, port }) => `${protocol}${port}`, maxLength: 5 }),
  })
  .map(({ isInternal, groups, passes, listeners }) => {
    const passing = passes === undefined ? {} : { passesToTarget: passes };
    const base = { name: 'n', vpcId: 'vpc-1', ...passing };
    const spec = isInternal
      ? { ...base, type: 'INTERNAL' as const, subnetId: 'subnet-1' }
      : { ...base, type: 'OPEN' as const };
    return {
      source: { kind: 'own', spec },
      ...passing,
      ...(groups === undefined ? {} : { securityGroupIds: groups }),
      listenerName: OURS,
      listeners,
      allowsAddressChange: true,
    };
  });

/** What others did to a load balancer: they added listeners, and changed weights and settings of ours. */
const driftArb = fc.record({
  foreign: fc.uniqueArray(
    fc.record({ protocol: fc.constantFrom('TCP', 'UDP', 'HTTPS', 'QUIC'), port: fc.integer({ min: 82, max: 90 }) }),
    { selector: ({ protocol, port }) => `${protocol}${port}`, maxLength: 2 },
  ),
  weight: fc.constantFrom(undefined, 0, 7),
  settings: fc.constantFrom({}, { sessionSeconds: 90, scheduler: 'LEAST_CONN' }),
  lost: fc.boolean(),
});

type Drift = typeof driftArb extends fc.Arbitrary<infer T> ? T : never;

function takeAll(
  observed: ObservedLoadBalancer | undefined,
  steps: readonly LoadBalancerStep[],
  onStep: (after: ObservedLoadBalancer | undefined) => void = () => undefined,
): ObservedLoadBalancer | undefined {
  let state = observed;
  for (const step of steps) {
    state = applyStep(state, step, OURS);
    onStep(state);
  }
  return state;
}

function stateOf(before: DesiredLoadBalancer, drift: Drift): ObservedLoadBalancer | undefined {
  const state = takeAll(undefined, diffLoadBalancer(before, undefined, drained).steps);
  if (state === undefined) return undefined;
  const isOverUdp = (protocol: string): boolean => protocol === 'UDP' || protocol === 'QUIC';
  const foreign = drift.foreign.filter(({ protocol, port }, at, all) =>
    [...state.listeners, ...all.slice(0, at)].every(
      (one) => one.port !== port || isOverUdp(one.protocol) !== isOverUdp(protocol),
    ),
  );
  return {
    ...state,
    listeners: [
      ...state.listeners.map((one) => ({ ...one, ...drift.settings })),
      ...foreign.map(({ protocol, port }) => listener('of-a-person', protocol, port)),
    ],
    targets: state.targets
      .slice(drift.lost ? 1 : 0)
      .map((one, at) => (at % 2 === 0 && drift.weight !== undefined ? { ...one, weight: drift.weight } : one)),
  };
}

const serving = (state: ObservedLoadBalancer | undefined, id: string): number =>
  state?.targets.filter(({ listenerId, weight }) => listenerId === id && weight > 0).length ?? 0;

test('all steps make the load balancer as it is desired, and a second comparison finds none', (t) =>
  assertLaw(t, (inner) =>
    fc.property(desiredArb, desiredArb, driftArb, (before, desired, drift) => {
      const observed = stateOf(before, drift);
      const foreign = observed?.listeners.filter(({ name }) => name !== OURS) ?? [];
      const { steps, notices } = diffLoadBalancer(desired, observed, drained);
      const after = takeAll(observed, steps);
      inner.deepEqual(diffLoadBalancer(desired, after, drained).steps, []);
      const isReplaced = steps.some(({ kind }) => kind === 'create');
      if (isReplaced) inner.not(after?.balancer.loadBalancerId, observed?.balancer.loadBalancerId);
      const ours = after?.listeners.filter(({ name }) => name === OURS) ?? [];
      const clashing = notices.filter(({ reason }) => reason === 'ListenerClash').length;
      inner.is(ours.length, desired.listeners.length - clashing);
      if (!isReplaced)
        inner.deepEqual(
          after?.listeners.filter(({ name }) => name !== OURS),
          foreign,
        );
      for (const one of ours) {
        const wanted = desired.listeners.find(({ protocol, port }) => `${protocol}/${port}` === listenerKeyOf(one));
        const weights = (all: readonly { ip: string; port: number; weight: number | 'asIs' }[]): readonly string[] =>
          all
            .filter(({ weight }) => Number(weight) > 0)
            .map(({ ip, port, weight }) => `${ip}:${port} ${weight}`)
            .sort();
        const its = after?.targets.filter(({ listenerId }) => listenerId === one.listenerId) ?? [];
        inner.deepEqual(weights(its), weights(wanted?.targets ?? []));
        inner.is(one.sessionSeconds, wanted?.settings.sessionSeconds);
      }
    }),
  ));

test('no listener that stays loses its last serving target while it is to have one', (t) =>
  assertLaw(t, (inner) =>
    fc.property(desiredArb, desiredArb, driftArb, (before, desired, drift) => {
      const observed = stateOf(before, drift);
      const { steps } = diffLoadBalancer(desired, observed, drained);
      if (observed === undefined || steps.some(({ kind }) => kind === 'create')) return;
      const watched = observed.listeners.filter(
        (one) =>
          one.name === OURS &&
          serving(observed, one.listenerId) > 0 &&
          desired.listeners.some(
            ({ protocol, port, targets = [] }) =>
              `${protocol}/${port}` === listenerKeyOf(one) && targets.some(({ weight }) => Number(weight) > 0),
          ),
      );
      takeAll(observed, steps, (state) => {
        for (const { listenerId } of watched) inner.true(serving(state, listenerId) > 0);
      });
    }),
  ));

test('a target is never deregistered with a weight, and stays until it is drained', (t) =>
  assertLaw(t, (inner) =>
    fc.property(desiredArb, desiredArb, driftArb, (before, desired, drift) => {
      const observed = stateOf(before, drift);
      const { steps } = diffLoadBalancer({ ...desired, allowsAddressChange: false }, observed, () => false);
      inner.false(steps.some(({ kind }) => kind === 'deregister'));
      let state = observed;
      for (const step of diffLoadBalancer(desired, observed, drained).steps) {
        if (step.kind === 'deregister') {
          const gone = step.targets.map(({ ip, port }) => `${ip}:${port}`);
          const doomed = state?.targets.filter(({ ip, port }) => gone.includes(`${ip}:${port}`)) ?? [];
          const ids = step.targets.map(({ place }) => place);
          for (const one of doomed) {
            const its = state?.listeners.find(({ listenerId }) => listenerId === one.listenerId);
            const key = its === undefined ? undefined : listenerKeyOf(its);
            const isMeant = step.targets.some(
              ({ place, ip, port }) => place === key && ip === one.ip && port === one.port,
            );
            if (isMeant) inner.is(one.weight, 0, `${ids}`);
          }
        }
        state = applyStep(state, step, OURS);
      }
    }),
  ));

test('a release leaves what is of others', (t) =>
  assertLaw(t, (inner) =>
    fc.property(desiredArb, driftArb, fc.boolean(), (before, drift, isOwn) => {
      const observed = stateOf(before, drift);
      if (observed === undefined) return;
      const after = takeAll({ ...observed, isOwn }, releaseSteps(OURS, { ...observed, isOwn }));
      if (isOwn) inner.is(after, undefined);
      else
        inner.deepEqual(
          after?.listeners,
          observed.listeners.filter(({ name }) => name !== OURS),
        );
    }),
  ));

const OPEN: DesiredLoadBalancer = {
  source: { kind: 'own', spec: { type: 'OPEN', name: 'n', vpcId: 'vpc-1' } },
  listenerName: OURS,
  listeners: [],
  allowsAddressChange: false,
};
const spec = { name: 'n', vpcId: 'vpc-1' };
const state = (
  balancer: Parameters<typeof made>[0],
  more: Partial<ObservedLoadBalancer> = {},
): ObservedLoadBalancer => ({ balancer: made(balancer), isOwn: true, listeners: [], targets: [], ...more });

function refused(
  t: ExecutionContext,
  desired: DesiredLoadBalancer,
  observed: ObservedLoadBalancer,
  words: RegExp,
): void {
  const { steps, notices } = diffLoadBalancer(desired, observed, drained);
  t.deepEqual(steps, []);
  t.like(notices, [{ reason: 'ImmutableChangeRefused', blocks: true }]);
  t.regex(notices[0]?.message ?? '', words);
  const { steps: allowed } = diffLoadBalancer({ ...desired, allowsAddressChange: true }, observed, drained);
  t.is(
    allowed.some(({ kind }) => kind === 'delete'),
    observed.isOwn,
    'the annotation lets it be replaced',
  );
}

test('a change that means another address is refused, unless it is allowed', (t) => {
  const internal = { ...spec, type: 'INTERNAL' as const, subnetId: 'subnet-1', vip: '10.0.0.9' };
  const own = (changes: object): DesiredLoadBalancer => ({
    ...OPEN,
    source: { kind: 'own', spec: { ...internal, ...changes } },
  });
  const existing: DesiredLoadBalancer = { ...OPEN, source: { kind: 'existing', loadBalancerId: 'lb-other' } };
  refused(t, own({}), state({ ...spec, type: 'OPEN' }), /is OPEN, and INTERNAL is asked for/);
  refused(t, own({ subnetId: 'subnet-2' }), state(internal), /its subnet is subnet-1, and subnet-2 is asked for/);
  refused(t, own({ vip: '10.0.0.8' }), state(internal), /its address is 10.0.0.9, and 10.0.0.8 is asked for/);
  refused(t, existing, state(internal), /lb-other is asked for/);
  refused(t, OPEN, state({ ...spec, type: 'OPEN' }, { isOwn: false }), /exists for others too/);
  const { vip: _vip, ...withoutVip } = internal;
  const asked = { ...OPEN, source: { kind: 'own' as const, spec: withoutVip } };
  t.deepEqual(diffLoadBalancer(asked, state(internal), drained), { steps: [], notices: [] }, 'no address is asked for');
});

test('a load balancer that exists for others keeps its attributes', (t) => {
  const observed = state({ ...spec, type: 'OPEN' }, { isOwn: false });
  const desired: DesiredLoadBalancer = {
    ...OPEN,
    source: { kind: 'existing', loadBalancerId: observed.balancer.loadBalancerId },
    passesToTarget: true,
    securityGroupIds: ['sg-1'],
  };
  t.deepEqual(diffLoadBalancer(desired, observed, drained), { steps: [], notices: [] });
  const { steps, notices } = diffLoadBalancer(desired, undefined, drained);
  t.deepEqual(steps, []);
  t.like(notices, [{ reason: 'ServiceRefused', blocks: true }]);
});

test('a foreign listener on the port is reported, also one of a range', (t) => {
  const wanted = { protocol: 'TCP' as const, port: 443, settings: {}, targets: [] };
  for (const other of [listener('a', 'HTTPS', 443), { ...listener('a', 'TCP', 400), endPort: 500 }]) {
    const observed = state({ ...spec, type: 'OPEN' }, { listeners: [other] });
    const { steps, notices } = diffLoadBalancer({ ...OPEN, listeners: [wanted] }, observed, drained);
    t.deepEqual(steps, []);
    t.like(notices, [{ reason: 'ListenerClash', blocks: false }]);
  }
  const udp = state({ ...spec, type: 'OPEN' }, { listeners: [listener('a', 'UDP', 443)] });
  t.deepEqual(diffLoadBalancer({ ...OPEN, listeners: [wanted] }, udp, drained).notices, []);
});

test('one call for many listeners and targets', (t) => {
  const targets = Array.from({ length: 30 }, (_, at) => ({ ip: `10.0.1.${at + 1}`, port: 30_000, weight: 10 }));
  const listeners = Array.from({ length: 50 }, (_, at) => ({
    protocol: 'TCP' as const,
    port: 1_000 + at,
    settings: { sessionSeconds: 0 },
    targets,
  }));
  const { steps } = diffLoadBalancer({ ...OPEN, listeners }, undefined, drained);
  t.deepEqual(
    steps.map(({ kind }) => kind),
    ['create', 'createListeners', 'createListeners', 'register', 'register', 'register'],
  );
  const full = takeAll(undefined, steps);
  t.is(full?.targets.length, 1_500);
  const gone = diffLoadBalancer({ ...OPEN, listeners: [] }, full, drained).steps;
  t.deepEqual(
    gone.map(({ kind }) => kind),
    ['deleteListeners', 'deleteListeners', 'deleteListeners'],
  );
});

test('targets that no selector names stay as they are', (t) => {
  const its = listener(OURS, 'TCP', 80, { sessionSeconds: 0 });
  const targets = [target({ listenerId: its.listenerId, ip: '10.0.1.1', port: 30_000, weight: 10 })];
  const observed = state({ ...spec, type: 'OPEN' }, { listeners: [its], targets });
  const listeners = [{ protocol: 'TCP' as const, port: 80, settings: { sessionSeconds: 0 } }];
  t.deepEqual(diffLoadBalancer({ ...OPEN, listeners }, observed, drained), { steps: [], notices: [] });
});
