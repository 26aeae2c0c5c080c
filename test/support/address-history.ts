/** How an address is held: the cloud has it on a node, an agent has leased it, a sandbox has it, an agent offers to give it back. */
export type HoldKind = 'cloud' | 'journal' | 'offered' | 'sandbox';

/** Who holds an address: a sandbox, a lease or an ENI, by its name, and where. */
export type Holder = { readonly node: string; readonly owner: string };

/** Addresses, each with one that holds it. */
type Held = readonly (readonly [ip: string, holder: Holder])[];

/** What must not be of an address, by the auditor that it is of. */
type Finding = { readonly auditor: 'A1' | 'A2' | 'A8' | 'A11'; readonly ip: string; readonly text: string };

type Hold = Holder & { readonly ip: string; readonly kind: HoldKind; readonly fromMs: number; readonly toMs: number };

/** What a history is told, and for how long an address rests between two Pods. */
type HistoryOptions = {
  readonly kinds: readonly HoldKind[];
  readonly cooldownMs?: number;
  /** When connections of an address were forgotten last on a node, if they were; on the clock of the history. */
  readonly flushedMs?: (ip: string, node: string) => number | undefined;
  /** The name whose Pods an address is kept for, if it is: between two of them it needs no rest. Owners are `NAME` or `NAME#NUMBER`. */
  readonly keptFor?: (ip: string) => string | undefined;
};

const FOREVER = Number.POSITIVE_INFINITY;

/**
 * The life of each address: who held it, how, and from when until when. What must hold: a sandbox lies within a lease and within
 * an assignment of the cloud, all on one node; no two sandboxes overlap; what a node offers nobody has there; from one sandbox to the
 * next there is a cooldown. Kinds that it is not told of are not judged.
 */
export class AddressHistory {
  readonly #options: HistoryOptions;
  readonly #open = new Map<string, readonly Hold[]>();
  /** What the last look at each kind saw. */
  readonly #looked = new Map<HoldKind, Held>();
  readonly #past = new Map<string, Hold[]>();
  /** Addresses whose holders changed since they were judged. */
  readonly #changed = new Set<string>();
  readonly #found: Finding[] = [];

  constructor(options: HistoryOptions) {
    this.#options = options;
  }

  /** Somebody holds an address from now on. */
  begin(atMs: number, ip: string, kind: HoldKind, { node, owner }: Holder): void {
    if (this.#openOf(ip, kind).some((one) => isSame(one, { node, owner }))) return;
    const hold: Hold = { ip, kind, node, owner, fromMs: atMs, toMs: FOREVER };
    if (kind === 'sandbox') this.#judgeRest(hold);
    this.#open.set(ip, [...(this.#open.get(ip) ?? []), hold]);
    this.#note(hold);
  }

  /** It holds it no more; nothing happens where it did not. */
  end(atMs: number, ip: string, kind: HoldKind, holder: Holder): void {
    const ended = this.#openOf(ip, kind).find((one) => isSame(one, holder));
    if (ended === undefined) return;
    this.#open.set(
      ip,
      (this.#open.get(ip) ?? []).filter((one) => one !== ended),
    );
    this.#past.set(ip, [...(this.#past.get(ip) ?? []), { ...ended, toMs: atMs }]);
    this.#note(ended);
  }

  /** Begins and ends what has changed: these are all who hold addresses in one way now. */
  look(atMs: number, kind: HoldKind, held: Held): void {
    if (isSameList(held, this.#looked.get(kind))) return;
    const now = new Set(held.map(([ip, { node, owner }]) => `${ip} ${node} ${owner}`));
    for (const [ip, { node, owner }] of this.held(kind))
      if (!now.has(`${ip} ${node} ${owner}`)) this.end(atMs, ip, kind, { node, owner });
    for (const [ip, holder] of held) this.begin(atMs, ip, kind, holder);
    this.#looked.set(kind, held);
  }

  /** Returns what must not be and was not said yet. */
  judge(): readonly Finding[] {
    for (const ip of this.#changed) this.#judgeHolders(ip);
    this.#changed.clear();
    return this.#found.splice(0);
  }

  /** Every address that is held in a way now, with who holds it. */
  held(kind: HoldKind): Held {
    return [...this.#open].flatMap(([ip, holds]) =>
      holds.filter((one) => one.kind === kind).map((one) => [ip, one] as const),
    );
  }

  /** Renders the life of an address: a line for each that held it, in the order in which they came. */
  table(ip: string): readonly string[] {
    const life = [...(this.#past.get(ip) ?? []), ...(this.#open.get(ip) ?? [])].sort((a, b) => a.fromMs - b.fromMs);
    return life.map(({ kind, node, owner, fromMs, toMs }) => {
      const until = toMs === FOREVER ? 'now' : toMs.toFixed(0);
      return `${ip}  ${kind.padEnd(7)}  ${node}  ${fromMs.toFixed(0).padStart(8)} to ${until.padStart(8)}  ${owner}`;
    });
  }

  #openOf(ip: string, kind: HoldKind): readonly Hold[] {
    return (this.#open.get(ip) ?? []).filter((one) => one.kind === kind);
  }

  #note({ ip, kind }: Hold): void {
    this.#changed.add(ip);
    this.#looked.delete(kind);
  }

  #judgeHolders(ip: string): void {
    const sandboxes = this.#openOf(ip, 'sandbox');
    const [first, second] = sandboxes;
    if (first !== undefined && second !== undefined)
      this.#tell('A1', ip, `${ip} is in two sandboxes, of ${nameOf(first)} and of ${nameOf(second)}`);
    for (const sandbox of sandboxes) {
      if (this.#lacks('cloud', sandbox)) this.#tell('A2', ip, `${sandbox.owner} has ${ip}, which is not on its node`);
      if (this.#lacks('journal', sandbox))
        this.#tell('A11', ip, `${sandbox.owner} has ${ip}, which its agent has not leased`);
    }
    // An offer of a node from which the cloud has taken it is void.
    const offers = this.#openOf(ip, 'offered');
    const lease = this.#openOf(ip, 'journal').find(({ node }) => offers.some((offer) => offer.node === node));
    if (lease !== undefined) this.#tell('A11', ip, `${ip} is on offer, and ${nameOf(lease)} has it`);
  }

  #lacks(kind: HoldKind, { ip, node }: Hold): boolean {
    return this.#options.kinds.includes(kind) && !this.#openOf(ip, kind).some((one) => one.node === node);
  }

  #judgeRest({ ip, node, owner, fromMs }: Hold): void {
    const { cooldownMs = 0, flushedMs, keptFor } = this.#options;
    const others = (this.#past.get(ip) ?? []).filter((one) => one.kind === 'sandbox' && one.owner !== owner);
    const last = others.at(-1);
    if (last === undefined) return;
    // On another node nobody can forget them.
    if (last.node === node && (flushedMs?.(ip, node) ?? Number.NEGATIVE_INFINITY) >= last.toMs) return;
    const restMs = fromMs - last.toMs;
    const isOfOneName = [owner, last.owner].every((one) => one.split('#')[0] === keptFor?.(ip));
    if (restMs < cooldownMs && !isOfOneName)
      this.#tell('A8', ip, `${owner} has ${ip} ${restMs.toFixed(0)} ms after ${last.owner}`);
  }

  #tell(auditor: Finding['auditor'], ip: string, text: string): void {
    this.#found.push({ auditor, ip, text });
  }
}

function isSameList(held: Held, before: Held | undefined): boolean {
  return (
    held.length === before?.length &&
    held.every(([ip, holder], at) => before[at]?.[0] === ip && isSame(before[at][1], holder))
  );
}

function isSame(a: Holder, b: Holder): boolean {
  return a.node === b.node && a.owner === b.owner;
}

function nameOf({ owner, node }: Holder): string {
  return `${owner} on ${node}`;
}
