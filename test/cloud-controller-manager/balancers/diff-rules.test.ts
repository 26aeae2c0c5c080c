import test from 'ava';
import fc from 'fast-check';
import type { DesiredLoadBalancer } from '../../../cloud-controller-manager/balancers/desired-load-balancer.ts';
import type {
  DesiredCertificate,
  DesiredRule,
  DesiredRuleListener,
} from '../../../cloud-controller-manager/balancers/desired-rules.ts';
import { diffLoadBalancer, releaseSteps } from '../../../cloud-controller-manager/balancers/diff-load-balancer.ts';
import { rulesIn } from '../../../cloud-controller-manager/balancers/find-rule-drift.ts';
import type { ObservedLoadBalancer } from '../../../cloud-controller-manager/balancers/observed-load-balancer.ts';
import { ruleKeyOf } from '../../../cloud-controller-manager/balancers/target-place.ts';
import { assertLaw } from '../../support/law.ts';
import { applyStep, listener, made } from './apply-steps.ts';

const OURS = 'tke-eni-1';
/** More than that no change needs: rules are made, targets serve, redirects move, what is left over goes. */
const MAX_ROUNDS = 6;
const drained = (): boolean => true;

const ruleArb = fc.record({
  domain: fc.constantFrom('', 'a.example'),
  url: fc.constantFrom('/', '=/a'),
  scheduler: fc.constantFrom('WRR', 'IP_HASH'),
  ips: fc.uniqueArray(fc.constantFrom('10.0.1.1', '10.0.1.2', '10.0.1.3'), { maxLength: 3 }),
  isRedirected: fc.boolean(),
});
type RuleInput = typeof ruleArb extends fc.Arbitrary<infer T> ? T : never;

const rulesArb = fc.uniqueArray(ruleArb, {
  selector: ({ domain, url }) => `${domain}${url}`,
  minLength: 1,
  maxLength: 4,
});
const certificateArb = fc.constantFrom('cert-1', 'cert-2', 'asIs');
type ListenerInput = {
  readonly protocol: 'HTTP' | 'HTTPS';
  readonly port: number;
  readonly certificate: string;
  readonly rules: readonly RuleInput[];
};

/** Mostly HTTP on 80 and HTTPS on 443; a port may change its protocol, and be one that a person has. */
const listenersArb = fc
  .tuple(
    ...[80, 443, 8080].map((port) =>
      fc.option(
        fc.record({
          protocol: fc
            .integer({ min: 0, max: 9 })
            .map((n) => (n < 2 === (port === 443) ? 'HTTP' : 'HTTPS') as 'HTTP' | 'HTTPS'),
          port: fc.constant(port),
          certificate: certificateArb,
          rules: rulesArb,
        }),
        { freq: port === 8080 ? 1 : 6 },
      ),
    ),
  )
  .map((all): readonly ListenerInput[] => all.flatMap((one) => one ?? []));

const desiredArb = listenersArb.map((listeners) => desiredOf(withRedirects(listeners)));

/** Redirects lead from HTTP to the same place of HTTPS, where that is. */
function withRedirects(inputs: readonly ListenerInput[]): readonly DesiredRuleListener[] {
  const https = inputs.find(({ protocol }) => protocol === 'HTTPS');
  return inputs.map(({ protocol, port, certificate, rules }) => ({
    protocol,
    port,
    rules: rules.map((rule) => {
      const target = protocol === 'HTTP' && rule.isRedirected ? https : undefined;
      const isThere = target?.rules.some(({ domain, url }) => domain === rule.domain && url === rule.url);
      const redirect = { protocol: 'HTTPS' as const, port: target?.port ?? 0, code: 301 as const };
      return {
        ...plainRule(rule, protocol === 'HTTPS' ? certificate : undefined),
        ...(isThere ? { redirect: { ...redirect, domain: rule.domain, url: rule.url }, targets: undefined } : {}),
      } as DesiredRule;
    }),
  }));
}

function plainRule({ domain, url, scheduler, ips }: RuleInput, certificate: string | undefined): DesiredRule {
  const its: DesiredCertificate = certificate === 'asIs' ? { kind: 'asIs' } : existing(certificate ?? '');
  return {
    ...{ domain, url, settings: { scheduler } },
    ...(domain === '' ? { isDefault: true as const } : {}),
    ...(certificate === undefined ? {} : { certificate: its }),
    targets: ips.map((ip) => ({ ip, port: 80, weight: 10 })),
  };
}

function existing(id: string): DesiredCertificate {
  return { kind: 'existing', ids: [id] };
}

function desiredOf(ruleListeners: readonly DesiredRuleListener[], maxRules?: number): DesiredLoadBalancer {
  return {
    source: { kind: 'own', spec: { name: 'n', vpcId: 'vpc-1', type: 'OPEN' } },
    listenerName: OURS,
    listeners: [],
    ruleListeners,
    ...(maxRules === undefined ? {} : { maxRules }),
    allowsAddressChange: true,
  };
}

function empty(): ObservedLoadBalancer {
  const foreign = [listener('of-a-person', 'TCP', 8080), listener('of-a-person', 'HTTP', 9000)];
  const balancer = made({ name: 'n', vpcId: 'vpc-1', type: 'OPEN' });
  return { balancer, isOwn: true, listeners: foreign, targets: [] };
}

type Serves = (target: { readonly ip: string }) => boolean;

/** Compares and changes until nothing is left to do. */
function converge(observed: ObservedLoadBalancer, desired: DesiredLoadBalancer, serves?: Serves) {
  let state = observed;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const { steps, awaited } = diffLoadBalancer(desired, state, drained, serves);
    if (steps.length === 0) return { state, awaited };
    for (const step of steps) state = applyStep(state, step, OURS) ?? state;
  }
  throw new Error(`there are steps after ${MAX_ROUNDS} rounds`);
}

/** The host and path of a rule. */
function placeOf(key: string): string {
  return key.slice(key.indexOf(' ') + 1);
}

function keysOf(desired: DesiredLoadBalancer): readonly string[] {
  return (desired.ruleListeners ?? []).flatMap(({ protocol, port, rules }) =>
    rules.map((rule) => ruleKeyOf(`${protocol}/${port}`, rule)),
  );
}

test('rules and redirects become what is desired, whatever was there; what is of others stays', (t) =>
  assertLaw(t, (inner) =>
    fc.property(desiredArb, desiredArb, (before, desired) => {
      const { state: first } = converge(empty(), before);
      const foreign = first.listeners.filter(({ name }) => name !== OURS);
      const { state, awaited } = converge(first, desired);
      inner.is(awaited, undefined);
      inner.deepEqual(
        state.listeners.filter(({ name }) => name !== OURS),
        foreign,
      );
      const { rules, redirects } = rulesIn(state, desired);
      const wanted = new Set(keysOf(desired));
      // A host that is to be on HTTPS, and has no certificate, stays on HTTP.
      const lacking = new Set(
        keysOf(desired).flatMap((key) => (key.startsWith('HTTPS') && !rules.has(key) ? [placeOf(key)] : [])),
      );
      for (const key of rules) inner.true(wanted.has(key) || lacking.has(placeOf(key)), key);
      for (const listenerOfOurs of state.listeners.filter(({ name }) => name === OURS)) {
        const { protocol, rules: its = [], isSni } = listenerOfOurs;
        if (protocol === 'HTTPS')
          inner.true(isSni === true && its.every(({ certificate }) => certificate !== undefined));
        if (its.some(({ domain }) => domain === ''))
          inner.true(its.some(({ domain, isDefault }) => domain === '' && isDefault));
      }
      for (const { protocol, port, rules: its } of desired.ruleListeners ?? [])
        for (const rule of its) {
          const key = ruleKeyOf(`${protocol}/${port}`, rule);
          const { redirect } = rule;
          const target = redirect && ruleKeyOf(`${redirect.protocol}/${redirect.port}`, redirect);
          const isMade = rules.has(key) && target !== undefined && rules.has(target);
          inner.is(redirects.get(key), isMade ? `${target} by 301` : undefined);
        }
      inner.deepEqual(releaseSteps(OURS, state).filter(({ kind }) => kind === 'delete').length, 1);
    }),
  ));

test('a rule that answers requests gets no redirect, and loses none, before what takes over serves', (t) =>
  assertLaw(t, (inner) =>
    fc.property(desiredArb, desiredArb, (before, desired) => {
      const { state: first } = converge(empty(), before);
      const live = new Set(first.targets.filter(({ weight }) => weight > 0).map(({ ruleId }) => ruleId));
      const { state } = converge(first, desired, () => false);
      const moved = (state.rewrites ?? []).filter(
        ({ sourceRuleId }) =>
          live.has(sourceRuleId) && !first.rewrites?.some((one) => one.sourceRuleId === sourceRuleId),
      );
      for (const { targetRuleId } of moved) {
        const target = state.targets.filter(({ ruleId }) => ruleId === targetRuleId);
        inner.is(target.length, 0, 'the rule that it leads to is to have no targets');
      }
    }),
  ));

test('a change of all rules of a full listener stays within the quota', (t) => {
  const rules = (prefix: string): readonly DesiredRule[] =>
    Array.from({ length: 50 }, (_, at) => ({
      ...{ domain: 'a.example', url: `/${prefix}${at}`, settings: {} },
      targets: [{ ip: '10.0.1.1', port: 80, weight: 10 }],
    }));
  const one = desiredOf([{ protocol: 'HTTP', port: 80, rules: rules('a') }], 50);
  const other = desiredOf([{ protocol: 'HTTP', port: 80, rules: rules('b') }], 50);
  const { state: first } = converge(empty(), one);
  const { state } = converge(first, other);
  t.deepEqual([...rulesIn(state, other).rules].toSorted(), keysOf(other).toSorted());
});

test('a rule to which a redirect of others leads stays, with a notice', (t) => {
  const rule = { domain: 'a.example', url: '/', settings: {}, targets: [] };
  const one = desiredOf([{ protocol: 'HTTP', port: 80, rules: [rule, { ...rule, url: '/b' }] }]);
  const { state } = converge(empty(), one);
  const [, mine] = state.listeners.find(({ name }) => name === OURS)?.rules ?? [];
  const foreign = {
    ...{ sourceListenerId: 'lbl-other', sourceRuleId: 'loc-other', targetListenerId: 'lbl-1' },
    ...{ targetRuleId: mine?.ruleId ?? '', takesUrl: true, isAutomatic: false },
  };
  const less = desiredOf([{ protocol: 'HTTP', port: 80, rules: [rule] }]);
  const { steps, notices } = diffLoadBalancer(less, { ...state, rewrites: [foreign] }, drained);
  t.deepEqual(steps, []);
  t.regex(notices.map(({ message }) => message).join(), /HTTP\/80 a\.example\/b.*redirect that is not of this Ingress/);
});
