import { RESOURCE_KINDS } from '../../crd/kinds.ts';
import { FINALIZED_KINDS } from '../../crd/left-behind.ts';
import { TKE_SERVICE_CONFIG_KIND } from '../../crd/tke-service-config.ts';
import type { KubeObject, ResourceType } from '../../kube/kube-client.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  INGRESSES,
  NODES,
  PODS,
  resourceTypeOf,
  SERVICES,
} from '../../kube/resource-types.ts';
import { recordOf } from '../../runtime/json.ts';
import type { PodCluster } from '../ipamd/shell/pod-cluster.ts';

/** By every name that a command may have for them. */
const TYPES: Readonly<Record<string, ResourceType>> = {
  nodes: NODES,
  services: SERVICES,
  ingresses: INGRESSES,
  crd: CUSTOM_RESOURCE_DEFINITIONS,
  ...Object.fromEntries(
    [...RESOURCE_KINDS, TKE_SERVICE_CONFIG_KIND].flatMap((kind) =>
      [kind.plural, ...kind.shortNames].map((name) => [name, resourceTypeOf(kind)]),
    ),
  ),
};

/** Programs that a deletion of their Deployment ends. */
type Programs = Readonly<Record<string, () => Promise<void>>>;

/** What concerns workloads, images, nodes and rights: there are none of them here. */
const ELSEWHERE =
  /^kubectl (apply|(-n \S+ )?(rollout|logs|patch deployment|get configmap)|delete (-k|mutatingwebhookconfiguration|clusterrole)|(-n \S+ )?delete (daemonset|configmap|endpoints|cronjob)|(-n \S+ )?wait --for=delete pod )|^for key in /;

/**
 * Runs the commands of docs/uninstall.md against a cluster in this process, as kubectl does: a deletion waits until finalizers
 * are off. A command that it does not know fails.
 */
export class PageKubectl {
  readonly #cluster: PodCluster;
  readonly #programs: Programs;
  /** Of Pods whose deletion stands for that of their workload. */
  readonly #owners: () => readonly string[];

  constructor(cluster: PodCluster, programs: Programs, owners: () => readonly string[]) {
    this.#cluster = cluster;
    this.#programs = programs;
    this.#owners = owners;
  }

  /** Runs one line, for each node where it names one. @throws Error for what it does not know, KubeError */
  async run(line: string): Promise<void> {
    const nodes = this.#all(NODES).map(({ metadata }) => metadata.name);
    const filled = line.replace('NODE...', nodes.join(' ')).replaceAll('NAMESPACE', 'default');
    for (const command of /\bNODE\b/.test(filled) ? nodes.map((name) => filled.replace(/\bNODE\b/, name)) : [filled])
      await this.#runOne(command);
  }

  async #runOne(command: string): Promise<void> {
    const stopped = Object.keys(this.#programs).filter((name) => command.includes(`deployment/${name}`));
    for (const name of stopped) await this.#programs[name]?.();
    if (stopped.length > 0 || ELSEWHERE.test(command)) return;
    const words = command.split(' ').filter((word) => word !== '-n' && word !== 'kube-system' && word !== 'default');
    const flags = words.filter((word) => word.startsWith('-'));
    const [program, verb, ...rest] = words.filter((word) => !word.startsWith('-'));
    if (program === 'sleep') return await this.#cluster.scene.clock.advance(Number(verb) * 1_000);
    if (program !== 'kubectl') throw new Error(`unknown: ${command}`);
    const [what = '', ...names] = rest;
    switch (verb) {
      case 'get':
        if (what === 'nec,vip,veni,vipc,eipc') this.#expectNone(what);
        return;
      case 'cordon':
      case 'uncordon':
        return await this.#patchNodes([what, ...names], { spec: { unschedulable: verb === 'cordon' ? true : null } });
      case 'drain':
        for (const pod of this.#podsOn(what)) await this.#cluster.deletePod(pod);
        return;
      case 'annotate':
        return await this.#patchNodes(
          this.#all(NODES).map(({ metadata }) => metadata.name),
          { metadata: { annotations: annotationsOf(names) } },
        );
      case 'wait':
        return await this.#gone(what, () => this.#objectsOf(what));
      case 'delete':
        return await this.#delete(what, names, flags);
      default:
        throw new Error(`unknown: ${command}`);
    }
  }

  async #delete(what: string, names: readonly string[], flags: readonly string[]): Promise<void> {
    if (what === 'OWNER...') {
      for (const pod of this.#owners()) await this.#cluster.deletePod(pod);
      return;
    }
    const isBalanced = what === 'SERVICE-OR-INGRESS...';
    const kinds = isBalanced ? 'services,ingresses' : what;
    const isMeant = ({ metadata }: KubeObject): boolean =>
      isBalanced ? hasOurFinalizer(metadata) : flags.includes('--all') || names.includes(metadata.name);
    const meant = (): readonly Found[] => this.#objectsOf(kinds).filter(({ object }) => isMeant(object));
    for (const { type, object } of meant())
      await this.#cluster.run(this.#cluster.scene.kube.delete(type, refOf(object)));
    if (!flags.includes('--wait=false')) await this.#gone(what, meant);
  }

  async #gone(what: string, left: () => readonly Found[]): Promise<void> {
    await this.#cluster
      .until(() => left().length === 0, `${what} stay`)
      .catch((error: Error) => {
        throw new Error(
          `${error.message}: ${left()
            .map(({ object }) => `${object.kind} ${object.metadata.name}`)
            .join()}`,
        );
      });
  }

  #expectNone(kinds: string): void {
    const left = this.#objectsOf(kinds).map(({ object }) => `${object.kind} ${object.metadata.name}`);
    if (left.length > 0) throw new Error(`left: ${left.join()}`);
  }

  async #patchNodes(names: readonly string[], body: object): Promise<void> {
    const { kube } = this.#cluster.scene;
    for (const name of names) await this.#cluster.run(kube.patch(NODES, { name }, { kind: 'merge', body }));
  }

  #podsOn(node: string): readonly string[] {
    const on = this.#all(PODS).filter(({ spec }) => recordOf(spec)['nodeName'] === node);
    return on.map(({ metadata }) => metadata.name);
  }

  #objectsOf(kinds: string): readonly Found[] {
    return kinds.split(',').flatMap((kind) => {
      const type = TYPES[kind];
      if (type === undefined) throw new Error(`unknown kind: ${kind}`);
      return this.#all(type).map((object) => ({ type, object }));
    });
  }

  #all({ plural, group }: ResourceType): readonly KubeObject[] {
    return this.#cluster.scene.server.objects(plural, group) as readonly KubeObject[];
  }
}

type Found = { readonly type: ResourceType; readonly object: KubeObject };

/** Tells whether an object has a finalizer of ours. */
export function hasOurFinalizer({ finalizers = [] }: KubeObject['metadata']): boolean {
  return FINALIZED_KINDS.some(({ finalizer }) => finalizers.includes(finalizer));
}

function refOf({ metadata: { name, namespace } }: KubeObject) {
  return { name, ...(namespace === undefined ? {} : { namespace }) };
}

/** `key=value` sets an annotation, `key-` takes it off. */
function annotationsOf(words: readonly string[]): Readonly<Record<string, string | null>> {
  return Object.fromEntries(
    words.map((word) => (word.endsWith('-') ? [word.slice(0, -1), null] : (word.split('=') as [string, string]))),
  );
}
