/** Security groups for source ranges, step by step: whatever there is in the beginning, and whatever is asked for. */
import test from 'ava';
import fc from 'fast-check';
import type { IngressRule } from '../../../cloud/cloud.ts';
import { renderRules } from '../../../cloud-controller-manager/balancers/compare-rules.ts';
import type { DesiredLoadBalancer } from '../../../cloud-controller-manager/balancers/desired-load-balancer.ts';
import { diffLoadBalancer } from '../../../cloud-controller-manager/balancers/diff-load-balancer.ts';
import { withSourceGroup } from '../../../cloud-controller-manager/balancers/diff-security-groups.ts';
import type { ObservedLoadBalancer } from '../../../cloud-controller-manager/balancers/observed-load-balancer.ts';
import { assertLaw } from '../../support/law.ts';
import { applyStep, listener, made } from './apply-steps.ts';

const OURS = 'tke-eni-1';
const SPEC = { type: 'OPEN', name: 'n', vpcId: 'vpc-1' } as const;

const rulesArb: fc.Arbitrary<readonly IngressRule[]> = fc
  .uniqueArray(fc.constantFrom('10.0.0.0/8', '192.0.2.0/24', '198.51.100.7/32'), { minLength: 1, maxLength: 3 })
  .map((cidrs) => cidrs.map((cidr) => ({ isAccepted: true, cidr, protocol: 'TCP', ports: [[80, 80]] as const })));

const desiredArb = fc
  .record({ rules: fc.option(rulesArb), groups: fc.constantFrom(undefined, [], ['sg-user']) })
  .map(({ rules, groups }): DesiredLoadBalancer => {
    const spec = { name: 'g', description: '', tags: {} };
    const own = rules === null ? {} : { sourceGroup: { spec, rules } };
    const named = rules !== null || groups === undefined ? {} : { securityGroupIds: groups };
    const listeners = [{ protocol: 'TCP' as const, port: 80, settings: {} }];
    const source = { kind: 'own' as const, spec: SPEC };
    return { source, listenerName: OURS, listeners, allowsAddressChange: false, ...own, ...named };
  });

const observedArb = fc
  .record({
    isThere: fc.boolean(),
    hasListener: fc.boolean(),
    group: fc.option(fc.record({ rules: fc.oneof(fc.constant([]), rulesArb), isBound: fc.boolean() })),
    surplus: fc.uniqueArray(fc.constantFrom('sg-a', 'sg-b'), { maxLength: 2 }),
    others: fc.constantFrom([], ['sg-user']),
  })
  .map(({ isThere, hasListener, group, surplus, others }): ObservedLoadBalancer | undefined => {
    if (!isThere) return undefined;
    const found =
      group === null ? {} : { sourceGroup: { securityGroupId: 'sg-own', version: '1', rules: group.rules } };
    const securityGroupIds = [...(group?.isBound === true ? ['sg-own'] : []), ...others];
    const listeners = hasListener ? [listener(OURS, 'TCP', 80)] : [];
    const balancer = { ...made(SPEC), securityGroupIds };
    const surplusGroupIds = group === null ? [] : surplus;
    return { balancer, isOwn: true, listeners, targets: [], ...found, surplusGroupIds };
  });

test('the group is the only one of the load balancer in the end, or gone; a new listener is never without it', async (t) => {
  await assertLaw(t, () =>
    fc.property(desiredArb, observedArb, (desired, before) => {
      let observed = before;
      let rounds = 0;
      for (; rounds < 6; rounds++) {
        const { steps } = diffLoadBalancer(withSourceGroup(desired, observed), observed, () => true);
        if (steps.length === 0) break;
        // What follows a creation is left for the next round, as the controller does.
        const [first] = steps;
        const isMade = first?.kind === 'create' || first?.kind === 'createSecurityGroup';
        for (const step of isMade ? [first] : steps) {
          observed = applyStep(observed, step, OURS);
          const isOpen = observed?.balancer.securityGroupIds.join() !== observed?.sourceGroup?.securityGroupId;
          const hadListener = (before?.listeners.length ?? 0) > 0;
          const hasListener = (observed?.listeners.length ?? 0) > 0;
          if (desired.sourceGroup !== undefined && !hadListener && hasListener && isOpen) throw new Error('it is open');
        }
      }
      if (rounds === 6) throw new Error('it does not end');
      const { balancer, sourceGroup, surplusGroupIds } = observed ?? {};
      if (desired.sourceGroup === undefined) {
        if (sourceGroup !== undefined) throw new Error('the group is left');
        const wanted =
          desired.securityGroupIds ?? (before?.balancer.securityGroupIds ?? []).filter((id) => id === 'sg-user');
        return balancer?.securityGroupIds.join() === wanted.join();
      }
      return (
        balancer?.securityGroupIds.join() === sourceGroup?.securityGroupId &&
        renderRules(sourceGroup?.rules ?? []) === renderRules(desired.sourceGroup.rules ?? []) &&
        (surplusGroupIds ?? []).length === 0
      );
    }),
  );
});

test('what is to be admitted is admitted before a listener is made, and a group is deleted after it is taken off', (t) => {
  const rules: readonly IngressRule[] = [{ isAccepted: true, cidr: '10.0.0.0/8', protocol: 'TCP', ports: [[80, 80]] }];
  const balancer = { ...made(SPEC), securityGroupIds: ['sg-own'] };
  const sourceGroup = { securityGroupId: 'sg-own', version: '3', rules: [] };
  const observed: ObservedLoadBalancer = { balancer, isOwn: true, listeners: [], targets: [], sourceGroup };
  const source = { kind: 'own' as const, spec: SPEC };
  const listeners = [{ protocol: 'TCP' as const, port: 80, settings: {} }];
  const plain: DesiredLoadBalancer = { source, listenerName: OURS, listeners, allowsAddressChange: false };
  const wanted = { ...plain, sourceGroup: { spec: { name: 'g', description: '', tags: {} }, rules } };
  const kinds = (desired: DesiredLoadBalancer) =>
    diffLoadBalancer(withSourceGroup(desired, observed), observed, () => true).steps.map(({ kind }) => kind);
  t.deepEqual(kinds(wanted), ['replacePolicies', 'createListeners']);
  t.deepEqual(kinds(plain), ['setSecurityGroups', 'createListeners', 'deleteSecurityGroup']);
});
