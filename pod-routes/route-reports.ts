import type { CloudError } from '../cloud/cloud-error.ts';
import { Contests, contestText } from '../kube/contest.ts';
import type { EventSink } from '../kube/events/event-object.ts';
import { involvedObject } from '../kube/involved-object.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import { isKubeError } from '../kube/kube-error.ts';
import { LastReports } from '../kube/reporter.ts';
import { NODES } from '../kube/resource-types.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import { decideNetworkCondition, type NodeNetworks } from './decide-node-networks.ts';
import type { RouteRemoval } from './decide-routes.ts';
import type { RoutedNode } from './routed-node.ts';

/** Dependencies of the reports. */
type ReportDeps = {
  readonly kube: Pick<KubeClient, 'patch'>;
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
  readonly log: Logger;
  /** What to do while the VPC is not known, for people. */
  readonly vpcCure: string;
  readonly events: RouteEvents;
};

/**
 * Records the events of Nodes: without a route, with upstream's reason; with one that is not kept; or with a condition that
 * another client writes too.
 */
export type RouteEvents = EventSink<SaidOfNode['reason'] | 'FieldContested'>;

/** What the last event of a Node said. */
type SaidOfNode = { readonly reason: 'FailedToCreateRoute' | 'RouteNotKept'; readonly message: string };

/** Reports on routes: conditions and events of Nodes, and the log. Each event and line is written once per change. */
export class RouteReports {
  readonly #deps: ReportDeps;
  /** Lists and held routes by place, and the VPC. */
  readonly #last = new LastReports();
  /** Events, by name of a Node. */
  readonly #lastOfNodes = new LastReports();
  /** By uid of a Node. */
  readonly #contests = new Contests();

  constructor(deps: ReportDeps) {
    this.#deps = deps;
  }

  reportVpc(vpcId: string | undefined): void {
    const hasVpc = vpcId !== undefined;
    if (this.#last.note('vpc', [hasVpc]) === undefined) return;
    const { log } = this.#deps;
    if (hasVpc) log.info('routes of the VPC lead to networks of Pods', { vpcId });
    else log.warn(`no routes to networks of Pods: the VPC is not known; ${this.#deps.vpcCure}`);
  }

  reportList(place: string, error: CloudError | undefined): void {
    const added = this.#last.note(`list ${place}`, error === undefined ? [] : [error], ({ code }) => code) ?? [];
    if (added.length > 0) this.#deps.log.warn('the routes of the VPC cannot be read, will try again', { place, error });
  }

  reportHeld(place: string, held: readonly { readonly removal: RouteRemoval; readonly why: string }[]): void {
    const [first] = held;
    const textOf = ({ removal, why }: (typeof held)[number]): string => JSON.stringify([removal.route.cidr, why]);
    if (this.#last.note(`held ${place}`, held, textOf) === undefined || first === undefined) return;
    const { cidr, gatewayIp } = first.removal.route;
    const about = { count: held.length, cidr, gatewayIp, why: first.why };
    this.#deps.log.warn('routes of nodes that seem to be gone stay', about);
  }

  /** Writes the conditions of Nodes that differ, and an event where the reason is another. False when a write failed. */
  async writeNodes(
    entries: readonly RoutedNode[],
    { routed, unrouted, notKept }: NodeNetworks,
    limit: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const names = new Set(entries.map(({ name }) => name));
    for (const name of this.#lastOfNodes.keys()) if (!names.has(name)) this.#lastOfNodes.forget(name);
    const waiting = entries.filter(({ name }) => routed.has(name) || unrouted.has(name)).values();
    let isDone = true;
    const work = async (): Promise<void> => {
      for (const node of waiting) {
        this.#recordEvent(node, saidOf(unrouted.get(node.name), notKept.get(node.name)));
        isDone = (await this.#writeCondition(node, !unrouted.has(node.name), signal)) && isDone;
      }
    };
    const ends = await Promise.allSettled(Array.from({ length: limit }, work));
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
    return isDone;
  }

  #recordEvent(node: RoutedNode, said: SaidOfNode | undefined): void {
    const textOf = ({ reason, message }: SaidOfNode): string => JSON.stringify([node.uid, reason, message]);
    for (const event of this.#lastOfNodes.note(node.name, said === undefined ? [] : [said], textOf) ?? [])
      this.#deps.events.record({ involved: involvedObject(NODES, node), type: 'Warning', ...event });
  }

  async #writeCondition(node: RoutedNode, isRouted: boolean, signal: AbortSignal): Promise<boolean> {
    const { name, uid, resourceVersion, networkCondition } = node;
    const { kube, clock, log, events } = this.#deps;
    const nowText = new Date(clock.nowMs()).toISOString();
    const body = decideNetworkCondition(networkCondition, isRouted, nowText);
    if (body === undefined) return true;
    const isUndone = this.#contests.valueOf(uid) !== networkCondition?.status;
    const { waitMs, isNew } = this.#contests.ask(uid, isUndone, { uid, resourceVersion }, clock.monotonicMs());
    if (isNew) {
      const message = contestText('the condition NetworkUnavailable');
      events.record({ involved: involvedObject(NODES, node), type: 'Warning', reason: 'FieldContested', message });
    }
    // The next pass looks again.
    if (waitMs > 0) return true;
    try {
      const patch = { kind: 'strategic', body, subresource: 'status' } as const;
      const { metadata } = await kube.patch(NODES, { name }, patch, signal);
      const [{ status = '' } = {}] = body.status.conditions;
      this.#contests.note(uid, status, metadata, clock.monotonicMs());
      return true;
    } catch (error) {
      if (!isKubeError(error)) throw error;
      if (error.code !== 'NOT_FOUND') log.warn('the condition of a node is not written', { node: name, error });
      return error.code === 'NOT_FOUND';
    }
  }
}

function saidOf(unrouted: string | undefined, notKept: string | undefined): SaidOfNode | undefined {
  if (unrouted !== undefined) return { reason: 'FailedToCreateRoute', message: unrouted };
  return notKept === undefined ? undefined : { reason: 'RouteNotKept', message: notKept };
}
