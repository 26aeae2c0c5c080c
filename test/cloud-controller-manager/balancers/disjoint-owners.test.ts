import test from 'ava';
import fc from 'fast-check';
import type { DesiredLoadBalancer } from '../../../cloud-controller-manager/balancers/desired-load-balancer.ts';
import { diffLoadBalancer, releaseSteps } from '../../../cloud-controller-manager/balancers/diff-load-balancer.ts';
import { rulesIn } from '../../../cloud-controller-manager/balancers/find-rule-drift.ts';
import type { ObservedLoadBalancer } from '../../../cloud-controller-manager/balancers/observed-load-balancer.ts';
import { placeIdOf, placesOf } from '../../../cloud-controller-manager/balancers/target-place.ts';
import { assertLaw } from '../../support/law.ts';
import { applyStep, listener, made, target } from './apply-steps.ts';

/** Rules are made, their targets serve, redirects move, the rest goes. */
const MAX_ROUNDS = 6;
const [SERVICE, INGRESS, GROUP, PERSON] = ['of-service', 'of-ingress', 'of-group', 'of-a-person'] as const;
const drained = (): boolean => true;

const targetsArb = fc
  .uniqueArray(fc.constantFrom('10.0.1.1', '10.0.1.2'), { maxLength: 2 })
  .map((ips) => ips.map((ip) => ({ ip, port: 80, weight: 10 })));

const listenersArb = (ports: readonly number[]) =>
  fc.uniqueArray(
    fc.record({
      protocol: fc.constantFrom('TCP' as const, 'UDP' as const),
      port: fc.constantFrom(...ports),
      settings: fc.record({ scheduler: fc.constantFrom('WRR', 'LEAST_CONN') }),
      targets: targetsArb,
    }),
    { selector: ({ protocol, port }) => `${protocol}${port}`, maxLength: 3 },
  );

const rulesArb = (ports: readonly number[]) =>
  fc.uniqueArray(
    fc.record({
      protocol: fc.constant('HTTP' as const),
      port: fc.constantFrom(...ports),
      rules: fc.uniqueArray(
        fc.record({
          domain: fc.constantFrom('', 'a.example', 'b.example'),
          url: fc.constantFrom('/', '=/a'),
          settings: fc.record({ scheduler: fc.constantFrom('WRR', 'IP_HASH') }),
          targets: targetsArb,
        }),
        { selector: ({ domain, url }) => `${domain}${url}`, minLength: 1, maxLength: 4 },
      ),
    }),
    { selector: ({ port }) => port, maxLength: 2 },
  );

type Owner = { readonly name: string; readonly desired: DesiredLoadBalancer };

function ownerOf(name: string, contents: Pick<DesiredLoadBalancer, 'listeners' | 'ruleListeners'>): Owner {
  const source = { kind: 'existing' as const, loadBalancerId: SHARED.loadBalancerId };
  return { name, desired: { source, listenerName: name, allowsAddressChange: false, ...contents } };
}

const SHARED = made({ name: 'shared', vpcId: 'vpc-1', type: 'OPEN' });

/** A Service, an Ingress and a group of Ingresses, each with ports of its own. */
const disjointArb = fc
  .tuple(listenersArb([80, 81]), rulesArb([90, 91]), rulesArb([100, 101]))
  .map(([ofService, ofIngress, ofGroup]) => [
    ownerOf(SERVICE, { listeners: ofService }),
    ownerOf(INGRESS, { listeners: [], ruleListeners: ofIngress }),
    ownerOf(GROUP, { listeners: [], ruleListeners: ofGroup }),
  ]);

/** The same with ports that all of them may ask for, and a person may have. */
const clashingArb = fc
  .tuple(listenersArb([80, 81]), rulesArb([80, 81]), rulesArb([80, 81]))
  .map(([ofService, ofIngress, ofGroup]) => [
    ownerOf(SERVICE, { listeners: ofService }),
    ownerOf(INGRESS, { listeners: [], ruleListeners: ofIngress }),
    ownerOf(GROUP, { listeners: [], ruleListeners: ofGroup }),
  ]);

function shared(): ObservedLoadBalancer {
  const theirs = [listener(PERSON, 'TCP', 81), listener(PERSON, 'HTTP', 8080)];
  const targets = theirs
    .slice(0, 1)
    .map(({ listenerId }) => target({ listenerId, ip: '10.0.9.9', port: 1, weight: 5 }));
  return { balancer: SHARED, isOwn: false, listeners: theirs, targets };
}

/** Brings one owner in line; each step is checked to touch its own listeners alone. */
function bring(state: ObservedLoadBalancer, { name, desired }: Owner): ObservedLoadBalancer {
  let now = state;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const { steps } = diffLoadBalancer(desired, viewOf(now, name), drained);
    if (steps.length === 0) return now;
    for (const step of steps) now = applyStep(now, step, name) ?? now;
  }
  throw new Error(`there are steps after ${MAX_ROUNDS} rounds`);
}

/** The load balancer as an owner sees it. */
function viewOf(state: ObservedLoadBalancer, name: string): ObservedLoadBalancer {
  const places = placesOf(state.listeners, name);
  return { ...state, targets: state.targets.filter((one) => places.has(placeIdOf(one))) };
}

/** What an owner has, without the ids, which the cloud gives. */
function contentOf(state: ObservedLoadBalancer, name: string): unknown {
  const places = placesOf(state.listeners, name);
  const settings = state.listeners
    .filter((one) => one.name === name)
    .map(({ protocol, port, scheduler, rules }) => [
      ...[protocol, port, scheduler],
      rules?.map((rule) => [rule.domain, rule.url, rule.scheduler]).toSorted(),
    ]);
  const targets = state.targets
    .filter((one) => places.has(placeIdOf(one)))
    .map((one) => [places.get(placeIdOf(one)), one.ip, one.port, one.weight].join(' '));
  const redirects = [...rulesIn(state, { listenerName: name }).redirects];
  return JSON.stringify([settings.map((one) => JSON.stringify(one)).toSorted(), targets.toSorted(), redirects]);
}

test('owners with ports of their own change nothing of each other, and their order does not matter', (t) =>
  assertLaw(t, (inner) =>
    fc.property(disjointArb, disjointArb, (before, after) => {
      const first = before.reduce(bring, shared());
      const names = [SERVICE, INGRESS, GROUP, PERSON];
      for (const owner of after) {
        const changed = bring(first, owner);
        for (const name of names) if (name !== owner.name) inner.is(contentOf(changed, name), contentOf(first, name));
      }
      const forward = after.reduce(bring, first);
      const backward = after.toReversed().reduce(bring, first);
      for (const name of names) inner.is(contentOf(forward, name), contentOf(backward, name));
    }),
  ));

test('owners that ask for one port: who has it keeps it as it is, the others have an event', (t) =>
  assertLaw(t, (inner) =>
    fc.property(clashingArb, clashingArb, (before, after) => {
      const names = [SERVICE, INGRESS, GROUP, PERSON];
      let state = before.reduce(bring, shared());
      for (const owner of after) {
        const wanted = [...owner.desired.listeners, ...(owner.desired.ruleListeners ?? [])];
        const taken = wanted.filter(({ protocol, port }) =>
          state.listeners.some(
            (one) => one.name !== owner.name && one.port === port && (one.protocol === 'UDP') === (protocol === 'UDP'),
          ),
        );
        const { notices } = diffLoadBalancer(owner.desired, viewOf(state, owner.name), drained);
        inner.is(notices.filter(({ reason }) => reason === 'ListenerClash').length, taken.length);
        const changed = bring(state, owner);
        for (const name of names) if (name !== owner.name) inner.is(contentOf(changed, name), contentOf(state, name));
        state = changed;
      }
      for (const { name } of after) {
        const released = releaseSteps(name, viewOf(state, name)).reduce(
          (now: ObservedLoadBalancer, step) => applyStep(now, step, name) ?? now,
          state,
        );
        inner.true(released.listeners.every((one) => one.name !== name));
        for (const other of names) if (other !== name) inner.is(contentOf(released, other), contentOf(state, other));
      }
    }),
  ));
