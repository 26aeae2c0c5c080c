import { POD_ANNOTATION } from '../../crd/names.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { POD_NAMESPACE } from './cluster.ts';
import { explainClaim } from './explain-claim.ts';
import type { System } from './system.ts';
import type { RunPodOptions, SystemPod } from './system-node.ts';

const SETS = {
  ...{ group: 'apps', version: 'v1', plural: 'statefulsets', kind: 'StatefulSet', isNamespaced: true },
} as const;

/** What a set is made of. */
type StatefulSetSpec = {
  readonly name: string;
  /** Further annotations of its Pods. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** What their network comes by; default tke-route-eni. */
  readonly plugin?: RunPodOptions['plugin'];
  /** Extended resources that they ask for; default an address of a shared ENI. */
  readonly resources?: readonly string[];
};

/**
 * A StatefulSet whose Pods keep their addresses, with the controller's, the scheduler's and the kubelets' parts played:
 * Pods of stable names come and go on the nodes that tests name.
 */
export class StatefulSet {
  readonly name: string;
  readonly #system: System;
  readonly #annotations: Readonly<Record<string, string>>;
  readonly #plugin: RunPodOptions['plugin'];
  readonly #resources: readonly string[] | undefined;
  readonly #nodes = new Map<string, string>();

  constructor(system: System, { name, annotations = {}, plugin, resources }: StatefulSetSpec) {
    this.#plugin = plugin;
    this.#resources = resources;
    this.#system = system;
    this.name = name;
    this.#annotations = { [POD_ANNOTATION.deletePolicy]: 'Never', ...annotations };
  }

  /** The node that a Pod was last started on; undefined while it is not there. */
  nodeOf(ordinal: number): string | undefined {
    return this.#nodes.get(this.podName(ordinal));
  }

  /** `web-0` */
  podName(ordinal: number): string {
    return `${this.name}-${ordinal}`;
  }

  /** Starts a Pod on a node and waits for its network. @throws Error when it has none in time */
  async start(ordinal: number, nodeName: string, waitMs = 60_000): Promise<SystemPod> {
    const name = this.podName(ordinal);
    this.#nodes.set(name, nodeName);
    const uid = await this.#uidOfSet();
    const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: this.name, uid, controller: true }];
    const marks = {
      ...{ annotations: this.#annotations, labels: { app: this.name }, ownerReferences },
      ...(this.#resources === undefined ? {} : { resources: this.#resources }),
    };
    const options = { waitMs, marks, ...(this.#plugin === undefined ? {} : { plugin: this.#plugin }) };
    try {
      return await this.#system.node(nodeName).runPod(name, options);
    } catch (error) {
      throw new Error(`${explainClaim(this.#system, name)}\n${String(error)}`, { cause: error });
    }
  }

  /** Ends a Pod in order. */
  async stop(ordinal: number): Promise<void> {
    await this.#system.node(this.#take(ordinal)).removePod(this.podName(ordinal));
  }

  /** Ends a Pod and starts it again, on the same node or another. */
  async restart(ordinal: number, nodeName = this.nodeOf(ordinal) ?? ''): Promise<SystemPod> {
    await this.stop(ordinal);
    return this.start(ordinal, nodeName);
  }

  /** Pods whose owner is not there are garbage, so the set is an object too. */
  async #uidOfSet(): Promise<string> {
    const { admin } = this.#system.cluster;
    const ref = { namespace: POD_NAMESPACE, name: this.name };
    const labels = { app: this.name };
    const spec = { selector: { matchLabels: labels }, serviceName: this.name, template: { metadata: { labels } } };
    const object = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: ref, spec };
    const found = await admin.get(SETS, ref);
    if (found !== undefined) return found.metadata.uid ?? '';
    try {
      return (await admin.create(SETS, object)).metadata.uid ?? '';
    } catch (error) {
      if (!isKubeError(error, 'ALREADY_EXISTS')) throw error;
      return await this.#uidOfSet();
    }
  }

  #take(ordinal: number): string {
    const name = this.podName(ordinal);
    const nodeName = this.#nodes.get(name);
    if (nodeName === undefined) throw new Error(`${name} does not run`);
    this.#nodes.delete(name);
    return nodeName;
  }
}
