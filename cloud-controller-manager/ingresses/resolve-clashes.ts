import { describeValue } from '../../runtime/decode.ts';
import type { DesiredCertificate, DesiredRule, DesiredRuleListener } from '../balancers/desired-rules.ts';
import { blocking, type Notice, remark } from '../balancers/notice.ts';
import { MAX_ITEMS_OF_PLAN, MAX_RULES_OF_PLAN } from '../balancers/plan-bound.ts';
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
};

/** What it gets. */
type Granted = { readonly listeners: readonly DesiredRuleListener[]; readonly notices: readonly Notice[] };

type Owned = { readonly owner: string };
type PortState = Owned & {
  readonly protocol: string;
  readonly rules: Map<string, Owned>;
  readonly certificates: Map<string, Owned & { readonly certificate: DesiredCertificate }>;
  defaultDomain?: Owned & { readonly domain: string };
};

const SHOWN = 3;
/** What all together may have. A rule that redirects is there twice. */
const MOST = { rules: 2 * MAX_RULES_OF_PLAN, targets: MAX_ITEMS_OF_PLAN } as const;

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
  let [rules, targets] = [0, 0];
  for (const claim of [first, ...others]) {
    const { uid } = claim.ingress;
    const isIn = claim === first || (first.isGrouped && claim.isGrouped);
    const more = rulesIn(claim.listeners);
    if (!isIn) granted.set(uid, shutOut(first));
    else if (rules + more > MOST.rules) granted.set(uid, tooMany('rules', rules + more));
    else {
      const got = grant(claim, ports, maxRules);
      rules += more;
      targets += targetsIn(got.listeners);
      granted.set(uid, targets > MOST.targets ? tooMany('targets', targets) : got);
    }
  }
  return granted;
}

function rulesIn(listeners: readonly DesiredRuleListener[]): number {
  return listeners.reduce((sum, { rules }) => sum + rules.length, 0);
}

function targetsIn(listeners: readonly DesiredRuleListener[]): number {
  const all = listeners.flatMap(({ rules }) => rules.map(({ targets = [] }) => targets.length));
  return all.reduce((sum, count) => sum + count, 0);
}

/** What one Ingress, or the older ones of a group and this one, would be multiplied out to. */
function tooMany(what: 'rules' | 'targets', count: number): Granted {
  const message = `the load balancer would have ${count} ${what} by this Ingress and the older ones that share it, and at most ${MOST[what]} are planned; name fewer paths or ports, or use another load balancer. Those of this Ingress are not planned`;
  return { listeners: [], notices: [blocking('IngressRefused', message)] };
}

function compare({ ingress: one }: RuleClaim, { ingress: other }: RuleClaim): number {
  return compareTexts(one.createdAt, other.createdAt) || compareTexts(one.uid, other.uid);
}

function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function shutOut({ ingress: { key } }: RuleClaim): Granted {
  const message = `the load balancer is of the Ingress ${key}; set ingress.cloud.tencent.com/enable-group to "true" at both, or use another load balancer`;
  return { listeners: [], notices: [remark('RuleClash', message)] };
}

function grant({ ingress: { key }, listeners }: RuleClaim, ports: Map<number, PortState>, maxRules: number): Granted {
  const clashes = new Set<string>();
  const notices: Notice[] = [];
  const free = listeners.map((listener) => {
    const state = ports.get(listener.port);
    if (state === undefined || state.protocol === listener.protocol)
      return { ...listener, rules: listener.rules.flatMap((rule) => settle(rule, listener, state)) };
    clashes.add(`port ${listener.port} is ${state.protocol} of the Ingress ${state.owner}`);
    return { ...listener, rules: [] };
  });
  const within = free.map((listener) => {
    const left = Math.max(0, maxRules - (ports.get(listener.port)?.rules.size ?? 0));
    if (listener.rules.length <= left) return listener;
    const message = `${listener.protocol}:${listener.port} may have ${maxRules} rules; ${listener.rules.length - left} of this Ingress are not served; raise the quota of the account, or use another load balancer`;
    notices.push(remark('RulesOverQuota', message));
    return { ...listener, rules: listener.rules.slice(0, left) };
  });
  const kept = new Set(within.flatMap((listener) => listener.rules.map((rule) => idOf(listener, rule))));
  const whole = within
    .map((listener) => ({ ...listener, rules: listener.rules.filter((rule) => leadsTo(rule, kept)) }))
    .filter(({ rules }) => rules.length > 0);
  for (const listener of whole) take(listener);
  if (clashes.size > 0) {
    const more = clashes.size > SHOWN ? ` and ${clashes.size - SHOWN} more` : '';
    notices.push(
      remark('RuleClash', `${[...clashes].slice(0, SHOWN).join('; ')}${more}; that is not served for this Ingress`),
    );
  }
  return { listeners: whole, notices };

  function settle(rule: DesiredRule, listener: DesiredRuleListener, state?: PortState): readonly DesiredRule[] {
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

  function take({ protocol, port, rules }: DesiredRuleListener): void {
    const state: PortState = ports.get(port) ?? { owner: key, protocol, rules: new Map(), certificates: new Map() };
    ports.set(port, state);
    for (const rule of rules) {
      const { domain, url, certificate, isDefault } = rule;
      if (isDefault === true) state.defaultDomain ??= { owner: key, domain };
      state.rules.set(urlIdOf(protocol, port, domain, url), { owner: key });
      if (certificate !== undefined && !state.certificates.has(domain))
        state.certificates.set(domain, { owner: key, certificate });
    }
  }
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
