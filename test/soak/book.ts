/** Who has an address: a sandbox on a node. */
type Holder = { readonly node: string; readonly containerId: string };

/**
 * The book of addresses that the harness keeps for itself, over all nodes, from the answers alone. An address is held
 * from the answer of ADD until DEL is called; if that DEL could only be left for an agent that is down, until it is done.
 */
export class AddressBook {
  #holders = new Map<string, Holder>();

  /** Addresses that are held now. */
  get size(): number {
    return this.#holders.size;
  }

  /** Enters an answer of ADD. Returns what is wrong with it: somebody else holds the address. */
  claim(ip: string, holder: Holder): string | undefined {
    const held = this.#holders.get(ip);
    this.#holders.set(ip, holder);
    if (held === undefined || isSame(held, holder)) return undefined;
    return `${ip} was given to ${tell(holder)} while ${tell(held)} has it`;
  }

  /** Takes a holder's entry out, unless the address is another's by now. */
  release(ip: string, holder: Holder): void {
    const held = this.#holders.get(ip);
    if (held !== undefined && isSame(held, holder)) this.#holders.delete(ip);
  }

  /** Every address with its holder. */
  entries(): Iterable<readonly [ip: string, holder: Holder]> {
    return this.#holders.entries();
  }
}

function isSame(a: Holder, b: Holder): boolean {
  return a.node === b.node && a.containerId === b.containerId;
}

function tell({ node, containerId }: Holder): string {
  return `${containerId.slice(0, 12)} on ${node}`;
}
