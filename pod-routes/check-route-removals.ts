import { batchesOf, IDS_PER_CALL } from '../cloud/batches.ts';
import type { CallContext, SubnetPort } from '../cloud/cloud.ts';
import { isCloudError } from '../cloud/cloud-error.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import { decideBrake } from '../kube/release-brake.ts';
import { NODES } from '../kube/resource-types.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import type { RouteRemoval } from './decide-routes.ts';
import type { VpcFault } from './routes-elsewhere.ts';

/** Dependencies of the check. */
export type RemovalCheckDeps = {
  readonly subnets: Pick<SubnetPort, 'usersOf'>;
  readonly kube: Pick<KubeClient, 'get'>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly log: Logger;
  /** --node-release-percent */
  readonly percent: number;
};

/** What is known when routes are to go. */
type RemovalFacts = {
  readonly vpcId: string;
  /** What shows that it is another one: then the cloud cannot say whether a node is gone. */
  readonly vpcFault: VpcFault | undefined;
  readonly removals: readonly RouteRemoval[];
  /** Number of routes within the networks of the cluster. */
  readonly routeCount: number;
  readonly nodeCount: number;
  /** Address of a Node that is there: the cloud must know it, or its answer is not trusted. */
  readonly liveIp: string | undefined;
  /** Name of the Node that a network was last seen on; undefined: this process has not seen it. */
  readonly lastNodeOf: (cidr: string) => string | undefined;
};

/** Which routes may go now, and why the others may not. */
type RemovalVerdict = {
  readonly allowed: readonly RouteRemoval[];
  readonly held: readonly { readonly removal: RouteRemoval; readonly why: string }[];
};

const HOUR_MS = 3_600_000;
const CONTRADICTED = 'the API server finds the Node, and its lists lack it';

/**
 * Checks whether nodes are gone before their routes go: an API server that lost its Nodes shows all of them as gone. A
 * second source is the cloud: nothing has the address that the route leads to. Where the API server alone lacks the
 * node, a read of the Node must confirm it, and a share of the routes may go per hour. A new process counts again.
 */
export class RouteRemovalCheck {
  readonly #deps: RemovalCheckDeps;
  /** When routes were allowed to go by the word of the API server alone, by id. */
  readonly #allowedMs = new Map<string, number>();

  constructor(deps: RemovalCheckDeps) {
    this.#deps = deps;
  }

  /** @throws KubeError when the API server does not answer: then nothing goes */
  async check(facts: RemovalFacts, context: CallContext): Promise<RemovalVerdict> {
    const allowed = facts.removals.filter(({ why }) => why !== 'gone');
    const gone = facts.removals.filter(({ why }) => why === 'gone');
    const held: { readonly removal: RouteRemoval; readonly why: string }[] = [];
    if (gone.length === 0) return { allowed, held };
    const { vpcFault } = facts;
    if (vpcFault !== undefined) return { allowed, held: gone.map((removal) => ({ removal, why: vpcFault.message })) };
    const unused = facts.nodeCount === 0 ? new Set<string>() : await this.#findUnused(facts, gone, context);
    let isContradicted = false;
    for (const removal of gone) {
      const { cidr, gatewayIp, routeId } = removal.route;
      const braked = unused.has(gatewayIp) ? undefined : this.#whyBraked(routeId, facts);
      // One Node that is found is enough to distrust the lists; thousands of reads would not tell more.
      isContradicted ||= braked === undefined && !unused.has(gatewayIp) && (await this.#isFound(cidr, facts, context));
      const why = isContradicted && !unused.has(gatewayIp) ? CONTRADICTED : braked;
      if (why !== undefined) held.push({ removal, why });
      else {
        if (!unused.has(gatewayIp)) this.#allowedMs.set(routeId, this.#deps.clock.monotonicMs());
        allowed.push(removal);
      }
    }
    return { allowed, held };
  }

  async #isFound(cidr: string, { lastNodeOf }: RemovalFacts, { signal }: CallContext): Promise<boolean> {
    const name = lastNodeOf(cidr);
    return name !== undefined && (await this.#deps.kube.get(NODES, { name }, signal)) !== undefined;
  }

  #whyBraked(routeId: string, { routeCount, nodeCount }: RemovalFacts): string | undefined {
    const { clock, percent } = this.#deps;
    const nowMs = clock.monotonicMs();
    for (const [id, ms] of this.#allowedMs) if (nowMs - ms >= HOUR_MS) this.#allowedMs.delete(id);
    const begunCount = this.#allowedMs.size - (this.#allowedMs.has(routeId) ? 1 : 0);
    // Routes that went within the hour count as routes of the cluster.
    const decision = decideBrake({ configCount: routeCount + begunCount, nodeCount, begunCount, percent });
    return decision.kind === 'held' ? decision.why : undefined;
  }

  /** Finds addresses that nothing in the VPC has. An answer that lacks a live node's address proves nothing. */
  async #findUnused(
    { vpcId, liveIp }: RemovalFacts,
    gone: readonly RouteRemoval[],
    context: CallContext,
  ): Promise<ReadonlySet<string>> {
    const unused = new Set<string>();
    if (liveIp === undefined) return unused;
    const ips = [...new Set(gone.map(({ route }) => route.gatewayIp))];
    try {
      for (const batch of batchesOf(ips, IDS_PER_CALL - 1)) {
        const users = await this.#deps.subnets.usersOf(vpcId, [...batch, liveIp], context);
        const used = new Set(users.map(({ ip }) => ip));
        if (used.has(liveIp)) for (const ip of batch) if (!used.has(ip)) unused.add(ip);
      }
    } catch (error) {
      if (!isCloudError(error)) throw error;
      this.#deps.log.warn('the cloud does not tell who has the addresses that routes lead to', { error });
    }
    return unused;
  }
}
