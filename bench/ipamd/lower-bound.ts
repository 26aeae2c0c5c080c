/** A join: so many equal nodes, each of which wants so many addresses, on instances of one size. */
export type Join = {
  readonly nodes: number;
  /** Addresses that each node wants: its Pods and the warm ones. */
  readonly ipsPerNode: number;
  /** Limits of the instance: addresses besides the primary one of an ENI, ENIs besides the primary one. */
  readonly ipsPerEni: number;
  readonly enisPerNode: number;
};

/** Calls a second that are allowed. */
type AllowedRates = {
  /** Of all APIs of the product together: what the product's components hold to. */
  readonly product: number;
  readonly create: number;
  readonly attach: number;
  readonly assign: number;
};

/** Calls that one node cannot do without. */
type FewestCalls = { readonly create: number; readonly attach: number; readonly assign: number };

/** Documented: 100 a second for each of the three APIs; 50 a second and product is what TKE's components hold to. */
const DOCUMENTED_RATES: AllowedRates = { product: 50, create: 100, attach: 100, assign: 100 };

/** Addresses that one CreateNetworkInterface or one AssignPrivateIpAddresses may bring. */
const IPS_PER_CALL = 10;

/**
 * Computes the fewest calls that give a node its addresses.
 *
 * With D addresses wanted and at most L on an ENI, a node needs at least e = ceil(D / L) ENIs: e creations and e
 * attachments. A creation brings up to 10 addresses; each assignment up to 10 more, for one ENI. A further ENI costs two
 * calls for ten addresses, a further assignment one, so more ENIs than e never pay. With x_i addresses on ENI i the
 * assignments are the sum of max(0, ceil((x_i - 10) / 10)), least over all splits of D into e parts of at most L.
 */
export function fewestCalls({ ipsPerNode, ipsPerEni, enisPerNode }: Omit<Join, 'nodes'>): FewestCalls {
  const enis = Math.ceil(ipsPerNode / ipsPerEni);
  if (enis > enisPerNode) {
    throw new RangeError(`${ipsPerNode} addresses need ${enis} ENIs, the instance has ${enisPerNode}`);
  }
  const assign = leastAssignments(ipsPerNode, ipsPerEni, enis);
  return { create: enis, attach: enis, assign };
}

/**
 * Computes the least seconds in which all nodes can have their addresses: the calls divided by the rate that is allowed,
 * for the scarcest of the rates. It leaves out every description and every wait for a task.
 */
export function leastSeconds(join: Join, rates: AllowedRates = DOCUMENTED_RATES): number {
  const { create, attach, assign } = fewestCalls(join);
  const secondsPerNode = Math.max(
    (create + attach + assign) / rates.product,
    create / rates.create,
    attach / rates.attach,
    assign / rates.assign,
  );
  return join.nodes * secondsPerNode;
}

/** The least number of calls over every way to split the addresses on `enis` ENIs, by trying them all. */
function leastAssignments(ips: number, perEni: number, enis: number): number {
  if (enis === 0) return 0;
  let least = Number.POSITIVE_INFINITY;
  const smallest = Math.max(0, ips - (enis - 1) * perEni);
  for (let first = smallest; first <= Math.min(perEni, ips); first++) {
    const own = Math.max(0, Math.ceil((first - IPS_PER_CALL) / IPS_PER_CALL));
    least = Math.min(least, own + leastAssignments(ips - first, perEni, enis - 1));
  }
  return least;
}
