/** What others change of a load balancer: it is found, left or set again, whatever it is. */
import test from 'ava';
import fc from 'fast-check';
import type { DesiredLoadBalancer } from '../../../cloud-controller-manager/balancers/desired-load-balancer.ts';
import { diffLoadBalancer } from '../../../cloud-controller-manager/balancers/diff-load-balancer.ts';
import { baselineOf, findDrift, respectDrift } from '../../../cloud-controller-manager/balancers/find-drift.ts';
import type { ObservedLoadBalancer } from '../../../cloud-controller-manager/balancers/observed-load-balancer.ts';
import { assertLaw } from '../../support/law.ts';
import { applyStep, listener, target } from '../balancers/apply-steps.ts';

const NAME = 'tke-eni-1';

const hostArb = fc.integer({ min: 1, max: 6 });
const portArb = fc.constantFrom(80, 81, 82);
const desiredArb = fc
  .uniqueArray(fc.record({ port: portArb, hosts: fc.uniqueArray(hostArb, { maxLength: 5 }) }), {
    selector: ({ port }) => port,
    minLength: 1,
  })
  .map(
    (all): DesiredLoadBalancer => ({
      source: { kind: 'own', spec: { type: 'OPEN', name: 'web', vpcId: 'vpc-1' } },
      passesToTarget: true,
      securityGroupIds: ['sg-1'],
      listenerName: NAME,
      allowsAddressChange: false,
      listeners: all.map(({ port, hosts }) => ({
        protocol: 'TCP',
        port,
        settings: { scheduler: 'WRR', healthCheck: { isOn: true, kind: 'TCP' } },
        targets: hosts.map((host) => ({ ip: `10.0.0.${host}`, port: 8_080, weight: 10 })),
      })),
    }),
  );

type Change = (observed: ObservedLoadBalancer) => ObservedLoadBalancer;
const nth = <T>(items: readonly T[], at: number): T | undefined => items[at % Math.max(1, items.length)];

/** Something that a person does. */
const changeArb: fc.Arbitrary<Change> = fc.oneof(
  fc.boolean().map(
    (passesToTarget): Change =>
      (one) => ({ ...one, balancer: { ...one.balancer, passesToTarget } }),
  ),
  fc.nat(9).map(
    (at): Change =>
      (one) => {
        const doomed = nth(one.listeners, at);
        return {
          ...one,
          listeners: one.listeners.filter((other) => other !== doomed),
          targets: one.targets.filter(({ listenerId }) => listenerId !== doomed?.listenerId),
        };
      },
  ),
  fc.nat(9).map(
    (at): Change =>
      (one) => {
        const changed = nth(one.listeners, at);
        const listeners = one.listeners.map((other) =>
          other === changed ? { ...other, scheduler: 'LEAST_CONN' } : other,
        );
        return { ...one, listeners };
      },
  ),
  fc.tuple(fc.nat(9), fc.integer({ min: 0, max: 20 })).map(
    ([at, weight]): Change =>
      (one) => {
        const changed = nth(one.targets, at);
        return { ...one, targets: one.targets.map((other) => (other === changed ? { ...other, weight } : other)) };
      },
  ),
  fc.nat(9).map(
    (at): Change =>
      (one) => {
        const doomed = nth(one.targets, at);
        return { ...one, targets: one.targets.filter((other) => other !== doomed) };
      },
  ),
  fc.tuple(fc.nat(9), hostArb).map(
    ([at, host]): Change =>
      (one) => {
        const its = nth(one.listeners, at);
        const ip = `10.0.1.${host}`;
        const isThere = one.targets.some((other) => other.listenerId === its?.listenerId && other.ip === ip);
        if (its === undefined || isThere) return one;
        const added = target({ listenerId: its.listenerId, ip, port: 8_080, weight: 5 });
        return { ...one, targets: [...one.targets, added] };
      },
  ),
  portArb.map(
    (port): Change =>
      (one) => {
        if (one.listeners.some((other) => other.port === port)) return one;
        return { ...one, listeners: [...one.listeners, listener(NAME, 'TCP', port, { scheduler: 'WRR' })] };
      },
  ),
);

/** Takes all steps until none is left. */
function settle(desired: DesiredLoadBalancer, observed: ObservedLoadBalancer | undefined): ObservedLoadBalancer {
  let now = observed;
  for (let round = 0; round < 4; round++) {
    const { steps } = diffLoadBalancer(desired, now, () => true);
    if (steps.length === 0 && now !== undefined) return now;
    for (const step of steps) now = applyStep(now, step, NAME);
  }
  throw new Error('it does not settle');
}

test('nothing drifts by itself; what others do is found, left without a call, or set again', (t) =>
  assertLaw(t, (inner) =>
    fc.property(
      desiredArb,
      fc.array(changeArb, { minLength: 1, maxLength: 4 }),
      desiredArb,
      (desired, changes, next) => {
        const settled = settle(desired, undefined);
        const baseline = baselineOf(desired, settled, []);
        inner.deepEqual(findDrift(baseline, settled), []);
        const changed = changes.reduce((one, change) => change(one), settled);
        const drifts = findDrift(baseline, changed);
        const { steps } = diffLoadBalancer(desired, changed, () => true);
        inner.is(drifts.length === 0, steps.length === 0, 'it is found if and only if something would be set again');
        const left = respectDrift(desired, desired, drifts);
        inner.deepEqual(diffLoadBalancer(left, changed, () => true).steps, [], 'it is left');
        const later = baselineOf(desired, changed, drifts);
        const textsOf = (all: readonly object[]): readonly string[] => all.map((one) => JSON.stringify(one)).sort();
        inner.deepEqual(textsOf(findDrift(later, changed)), textsOf(drifts), 'and stays known');
        inner.deepEqual(findDrift(baselineOf(desired, settle(desired, changed), []), settle(desired, changed)), []);
        // What the Service asks for again is done, whatever others did.
        const fresh = respectDrift(next, desired, drifts);
        const after = settle(fresh, changed);
        for (const { port } of next.listeners) {
          const isNew = !desired.listeners.some((one) => one.port === port);
          if (isNew) inner.true(after.listeners.some((one) => one.port === port));
        }
      },
    ),
  ));
