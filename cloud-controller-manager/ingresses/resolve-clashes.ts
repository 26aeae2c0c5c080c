import { compareTexts } from '../../runtime/compare-texts.ts';
import { describeValue } from '../../runtime/decode.ts';
import type { DesiredCertificate, DesiredRule, DesiredRuleListener } from '../balancers/desired-rules.ts';
import { blocking, type Notice, remark } from '../balancers/notice.ts';
import { MAX_RULES_OF_PLAN, MAX_TARGETS_OF_PLAN } from '../balancers/plan-bound.ts';
import { urlIdOf } from './plan-redirects.ts';
import type { IngressHead } from './read-ingress.ts';

/** What an Ingress asks of a load balancer. */
export type RuleClaim = {
  readonly ingress: Pick<IngressHead, 'key' | 'uid' | 'createdAt'>;
  /** Whether it shares the load balancer (`enable-group`). */
  readonly isGrouped: boolean;
  /** `passive`: its rules are not made; others do not get them. `leaving`: they go. Absent: they are made. */
  readonly role?: 'passive' | 'leaving';
  readonly listeners: readonly DesiredRuleListener[];
  /** What it had before, and keeps where `listeners` are too many; absent: that is not known. */
  readonly former?: readonly DesiredRuleListener[];
};

/** What it gets. */
type Granted = {
  readonly listeners: readonly DesiredRuleListener[];
  readonly notices: readonly Notice[];
  /** Whether others do not get them, though it may have none of them. */
  readonly areReserved?: true;
};

type Owned = { readonly owner: string };
type PortState = Owned & {
  readonly protocol: string;
  readonly rules: Map<string, Owned>;
  /** How many of the rules do not count against the quota. */
  reserved: number;
  readonly certificates: Map<string, Owned & { readonly certificate: DesiredCertificate }>;
  defaultDomain?: Owned & { readonly domain: string };
};

const SHOWN = 3;
/** What all together may have. A rule that redirects is there twice. Those that are too many keep as many rules once more. */
const MOST = { rules: 2 * MAX_RULES_OF_PLAN, targets: MAX_TARGETS_OF_PLAN } as const;

/**
 * Divides a load balancer between Ingresses: of two that ask for one host and path the older one gets it, then the one with
 * the smaller uid. The order of the claims does not matter. A redirect goes with the rule that it leads to.
 * @param maxRules most rules of a listener
 * @returns what each gets, by uid
 */
export function resolveClashes(claims: readonly RuleClaim[], maxRules: number): ReadonlyMap<string, Granted> {
  const ports = new Map<number, PortState>();
  const [first, ...others] = claims.toSorted(compare);
  const granted = new Map<string, Granted>();
  if (first === undefined) return granted;
  const sums = { rules: 0, targets: 0, kept: 0 };
  for (const claim of [first, ...others]) {
    const isIn = claim === first || (first.isGrouped && claim.isGrouped);
    const got = isIn ? within(claim) : shutOut(first);
    take(claim.ingress.key, got, ports);
    granted.set(claim.ingress.uid, got);
  }
  return granted;

  /** What is refused does not count: a younger one may fit. */
  function within(claim: RuleClaim): Granted {
    const rules = sums.rules + rulesIn(claim.listeners);
    if (rules > MOST.rules) return keep(claim, tooMany('rules', rules));
    const got = grant(claim, ports, maxRules);
    const targets = sums.targets + targetsIn(got.listeners);
    if (targets > MOST.targets) return keep(claim, tooMany('targets', targets));
    [sums.rules, sums.targets] = [rules, targets];
    return got;
  }

  function keep({ listeners, former }: RuleClaim, notice: Notice): Granted {
    const kept = sums.kept + rulesIn(former ?? listeners);
    if (kept > MOST.rules) return { listeners: [], notices: [notice] };
    sums.kept = kept;
    if (former !== undefined) return { ...grant({ listeners: former }, ports, maxRules), notices: [notice] };
    return { ...grant({ listeners }, ports, Number.POSITIVE_INFINITY), notices: [notice], areReserved: true };
  }
}

function rulesIn(listeners: readonly DesiredRuleListener[]): number {
  return listeners.reduce((sum, { rules }) => sum + rules.length, 0);
}

function targetsIn(listeners: readonly DesiredRuleListener[]): number {
  const all = listeners.flatMap(({ rules }) => rules.map(({ targets = [] }) => targets.length));
  return all.reduce((sum, count) => sum + count, 0);
}

/** What one Ingress, or the older ones of a group and this one, would be multiplied out to. */
function tooMany(what: 'rules' | 'targets', count: number): Notice {
  const message = `the load balancer would have ${count} ${what} by this Ingress and the older ones that share it, and at most ${MOST[what]} are planned; name fewer paths or ports, or use another load balancer. What this Ingress has there stays as it is`;
  return blocking('IngressRefused', message);
}

function compare({ ingress: one }: RuleClaim, { ingress: other }: RuleClaim): number {
  return compareTexts(one.createdAt, other.createdAt) || compareTexts(one.uid, other.uid);
}

function shutOut({ ingress: { key } }: RuleClaim): Granted {
  const message = `the load balancer is of the Ingress ${key}; set ingress.cloud.tencent.com/enable-group to "true" at both, or use another load balancer`;
  return { listeners: [], notices: [remark('RuleClash', message)] };
}

/** Finds what of a claim is free. It takes nothing. */
function grant(
  { listeners }: Pick<RuleClaim, 'listeners'>,
  ports: ReadonlyMap<number, PortState>,
  maxRules: number,
): Granted {
  const clashes = new Set<string>();
  const notices: Notice[] = [];
  const free = listeners.map((listener) => {
    const state = ports.get(listener.port);
    if (state === undefined || state.protocol === listener.protocol)
      return { ...listener, rules: listener.rules.flatMap((rule) => freeRule(rule, listener, state)) };
    clashes.add(`port ${listener.port} is ${state.protocol} of the Ingress ${state.owner}`);
    return { ...listener, rules: [] };
  });
  const within = free.map((listener) => {
    const left = Math.max(0, maxRules - countOf(ports.get(listener.port)));
    if (listener.rules.length <= left) return listener;
    const message = `${listener.protocol}:${listener.port} may have ${maxRules} rules; ${listener.rules.length - left} of this Ingress are not served; raise the quota of the account, or use another load balancer`;
    notices.push(remark('RulesOverQuota', message));
    return { ...listener, rules: listener.rules.slice(0, left) };
  });
  const kept = new Set(within.flatMap((listener) => listener.rules.map((rule) => idOf(listener, rule))));
  const whole = within
    .map((listener) => ({ ...listener, rules: listener.rules.filter((rule) => leadsTo(rule, kept)) }))
    .filter(({ rules }) => rules.length > 0);
  if (clashes.size > 0) {
    const more = clashes.size > SHOWN ? ` and ${clashes.size - SHOWN} more` : '';
    notices.push(
      remark('RuleClash', `${[...clashes].slice(0, SHOWN).join('; ')}${more}; that is not served for this Ingress`),
    );
  }
  return { listeners: whole, notices };

  function freeRule(rule: DesiredRule, listener: DesiredRuleListener, state?: PortState): readonly DesiredRule[] {
    const taken = state?.rules.get(idOf(listener, rule));
    const { protocol, port } = listener;
    if (taken !== undefined) {
      clashes.add(
        `${protocol}:${port} ${describeValue(rule.domain)} ${describeValue(rule.url)} is of the Ingress ${taken.owner}`,
      );
      return [];
    }
    const certificate = state?.certificates.get(rule.domain);
    if (
      certificate !== undefined &&
      asksClients(rule.certificate) &&
      !isSame(certificate.certificate, rule.certificate)
    ) {
      note(
        `${protocol}:${port} ${describeValue(rule.domain)} has the certificate of the Ingress ${certificate.owner}, by which clients need none or another one`,
      );
      return [];
    }
    return [withCertificate(withDefault(rule, listener, state), listener, state)];
  }

  /** A listener has one default domain. */
  function withDefault(rule: DesiredRule, { protocol, port }: DesiredRuleListener, state?: PortState): DesiredRule {
    const other = state?.defaultDomain;
    if (other === undefined || rule.isDefault !== true || other.domain === rule.domain) return rule;
    note(`the default domain of ${protocol}:${port} is ${describeValue(other.domain)} of the Ingress ${other.owner}`);
    const { isDefault: _, ...plain } = rule;
    return plain;
  }

  function withCertificate(rule: DesiredRule, { protocol, port }: DesiredRuleListener, state?: PortState): DesiredRule {
    const other = state?.certificates.get(rule.domain);
    if (other === undefined || rule.certificate === undefined) return rule;
    if (!isSame(other.certificate, rule.certificate))
      note(
        `the certificate of ${protocol}:${port} ${describeValue(rule.domain)} is of the Ingress ${other.owner}, which is in force`,
      );
    return { ...rule, certificate: other.certificate };
  }

  function note(clash: string): void {
    clashes.add(clash);
  }
}

function take(owner: string, { listeners, areReserved }: Granted, ports: Map<number, PortState>): void {
  for (const { protocol, port, rules } of listeners) {
    const fresh: PortState = { owner, protocol, rules: new Map(), reserved: 0, certificates: new Map() };
    const state = ports.get(port) ?? fresh;
    ports.set(port, state);
    if (areReserved === true) state.reserved += rules.length;
    for (const { domain, url, certificate, isDefault } of rules) {
      if (isDefault === true) state.defaultDomain ??= { owner, domain };
      state.rules.set(urlIdOf(protocol, port, domain, url), { owner });
      if (certificate !== undefined && !state.certificates.has(domain))
        state.certificates.set(domain, { owner, certificate });
    }
  }
}

function countOf(state: PortState | undefined): number {
  return state === undefined ? 0 : state.rules.size - state.reserved;
}

/** Whether clients need a certificate. */
function asksClients(certificate: DesiredCertificate | undefined): boolean {
  return certificate?.kind === 'existing' && certificate.caId !== undefined;
}

function isSame(one: DesiredCertificate, other: DesiredCertificate | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function leadsTo({ redirect }: DesiredRule, kept: ReadonlySet<string>): boolean {
  if (redirect === undefined) return true;
  return kept.has(urlIdOf(redirect.protocol, redirect.port, redirect.domain, redirect.url));
}

function idOf({ protocol, port }: DesiredRuleListener, { domain, url }: DesiredRule): string {
  return urlIdOf(protocol, port, domain, url);
}
