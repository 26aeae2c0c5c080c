/** What a request looks like to a fault rule. */
type RequestSign = {
  readonly verb: string;
  readonly resource: string;
  readonly name: string;
  readonly user: string;
  readonly userAgent: string;
};

/** What a fault does to the requests that it meets. */
export type FaultAction =
  /** Waits before anything else. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** Answers with an error instead of doing anything. */
  | { readonly kind: 'status'; readonly code: number; readonly reason?: string; readonly retryAfterSeconds?: number }
  /** Breaks the connection before, or after, the request had its effect. */
  | { readonly kind: 'drop-before' | 'drop-after' }
  /** Takes the request and never answers: a partition that swallows packets. */
  | { readonly kind: 'hang' }
  /** Answers a list with no items and status 200, as a server does that lost its objects. */
  | { readonly kind: 'empty-list' }
  /** Answers a get or a list as it was so many changes of the resource ago, as a replica that lags does. */
  | { readonly kind: 'stale'; readonly changes: number }
  /** Ends a watch cleanly after a while, as a server does that is told to. */
  | { readonly kind: 'watch-end'; readonly ms: number }
  /** Delays what a watch sends, so that a cache goes stale. */
  | { readonly kind: 'watch-delay'; readonly ms: number };

/** A fault: which requests it meets (each field absent meets all), what it does, how often. */
export type FaultRule = {
  readonly verbs?: readonly string[];
  readonly resources?: readonly string[];
  readonly name?: string;
  readonly user?: string;
  /** A client, as `isClient` has it. */
  readonly userAgent?: string;
  readonly action: FaultAction;
  /** Goes away after so many requests. */
  readonly times?: number;
  /** Meets each request with this chance, 1 by default. */
  readonly chance?: number;
};

type Installed = { readonly rule: FaultRule; left: number };

/** The switchboard for faults. Empty, it does nothing. */
export class Faults {
  readonly #rules = new Set<Installed>();
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Installs a fault. Returns how to take it away. */
  add(rule: FaultRule): () => void {
    const installed = { rule, left: rule.times ?? Number.POSITIVE_INFINITY };
    this.#rules.add(installed);
    return () => this.#rules.delete(installed);
  }

  /** Takes all faults away. */
  clear(): void {
    this.#rules.clear();
  }

  /** Returns what is to be done to a request, in the order in which the rules were installed; counts it. */
  actionsFor(sign: RequestSign): readonly FaultAction[] {
    return [...this.#rules]
      .filter(({ rule }) => meets(rule, sign) && (rule.chance === undefined || this.#random() < rule.chance))
      .map((installed) => {
        installed.left -= 1;
        if (installed.left <= 0) this.#rules.delete(installed);
        return installed.rule.action;
      });
  }
}

/** Returns how many changes ago a read is answered from; 0: from now. */
export function staleChangesOf(actions: readonly FaultAction[]): number {
  return actions.reduce((sum, action) => sum + (action.kind === 'stale' ? action.changes : 0), 0);
}

/** Returns after how many milliseconds a watch ends; undefined: not by a fault. */
export function watchEndOf(actions: readonly FaultAction[]): number | undefined {
  const all = actions.flatMap((action) => (action.kind === 'watch-end' ? [action.ms] : []));
  return all.length === 0 ? undefined : Math.min(...all);
}

/** Returns the body of an answer as the faults leave it. */
export function sufferInAnswer(actions: readonly FaultAction[], verb: string, body: unknown): unknown {
  if (verb !== 'list' || !actions.some(({ kind }) => kind === 'empty-list')) return body;
  const list = body as { readonly metadata?: { readonly resourceVersion?: string } };
  const { metadata } = list;
  return { ...list, metadata: { resourceVersion: metadata?.resourceVersion }, items: [] };
}

/**
 * Reports whether a client is meant by a name: the user agent is this name, alone or before a `/` and a version. A name that ends
 * in `*` means all clients whose names begin so.
 */
export function isClient(userAgent: string, name: string): boolean {
  if (name.endsWith('*')) return userAgent.startsWith(name.slice(0, -1));
  return userAgent === name || userAgent.startsWith(`${name}/`);
}

function meets(rule: FaultRule, sign: RequestSign): boolean {
  return (
    (rule.verbs?.includes(sign.verb) ?? true) &&
    (rule.resources?.includes(sign.resource) ?? true) &&
    (rule.name === undefined || rule.name === sign.name) &&
    (rule.user === undefined || rule.user === sign.user) &&
    (rule.userAgent === undefined || isClient(sign.userAgent, rule.userAgent))
  );
}
