import type { KubeObject, ResourceType } from '../../kube/kube-client.ts';
import { NODES, PODS } from '../../kube/resource-types.ts';
import { listOf, recordOf } from '../../runtime/json.ts';
import { ADMIN } from '../../sim/kube-api/auth/tokens.ts';
import { parseLabelSelector } from '../../sim/kube-api/selector.ts';
import { dispatch } from '../../sim/kube-api/verbs/dispatch.ts';
import type { PodCluster } from '../ipamd/shell/pod-cluster.ts';
import { type KubectlArguments, readArguments, renderColumns, renderJsonPath } from './kubectl-arguments.ts';
import type { Answer } from './page-shell.ts';

/** A program of the cluster, by the name of its Deployment. */
export type DeployedProgram = {
  readonly stop: () => Promise<void>;
  /** What its Pods answer for /metrics. */
  readonly metrics?: () => Promise<string>;
};

type Found = { readonly type: ResourceType; readonly object: KubeObject };

/** Kinds that the API server here does not serve. */
const UNSERVED: readonly string[] = [
  ...['cronjob', 'podmonitor', 'prometheusrule'],
  ...['validatingadmissionpolicy', 'validatingadmissionpolicybinding'],
];
/** What is done on nodes: `tke-eni-agent uninstall` has tests of its own. */
const ON_NODES: ReadonlySet<string> = new Set(['apply', 'rollout', 'logs']);

/**
 * kubectl against a cluster in this process. It reads its arguments as kubectl does, and a deletion waits until finalizers are off.
 * What it does not know fails.
 */
export class PageKubectl {
  readonly #cluster: PodCluster;
  readonly #programs: Readonly<Record<string, DeployedProgram>>;
  /** What each kustomization makes, by its folder. */
  readonly #kustomizations: Readonly<Record<string, readonly KubeObject[]>>;

  constructor(
    cluster: PodCluster,
    programs: Readonly<Record<string, DeployedProgram>>,
    kustomizations: Readonly<Record<string, readonly KubeObject[]>> = {},
  ) {
    this.#cluster = cluster;
    this.#programs = programs;
    this.#kustomizations = kustomizations;
  }

  /** Runs a command. @throws Error for what it does not know, KubeError */
  async run(argv: readonly string[]): Promise<Answer> {
    const all = readArguments(argv);
    if (ON_NODES.has(all.verb)) return done('');
    switch (all.verb) {
      case 'get':
        return await this.#get(all);
      case 'delete':
        return await this.#delete(all);
      case 'patch':
        return await this.#patch(all);
      case 'wait':
        return await this.#gone(() => this.#find(all, 'absent is fine'));
      case 'cordon':
      case 'uncordon':
        for (const node of all.words)
          await this.#patchNode(node, { spec: { unschedulable: all.verb === 'cordon' ? true : null } });
        return done('');
      case 'drain':
        return await this.#drain(all);
      case 'annotate':
        for (const { object } of this.#find(all))
          await this.#patchNode(object.metadata.name, { metadata: { annotations: annotationsOf(all.words.slice(1)) } });
        return done('');
      case 'taint':
        return await this.#untaint(all);
      default:
        throw new Error(`unknown: kubectl ${argv.join(' ')}`);
    }
  }

  async #get(all: KubectlArguments): Promise<Answer> {
    const raw = all.flags.get('--raw');
    if (typeof raw === 'string') return done(await this.#metrics(raw));
    const found = this.#find(all);
    const output = String(all.flags.get('-o') ?? '');
    const [format = '', ...spec] = output.split('=');
    const objects = found.map(({ object }) => object);
    const [first] = all.words;
    const isOne = all.words.length === 1 && first?.includes('/') === true;
    switch (format) {
      case 'name':
        return done(found.map((one) => `${nameOf(one)}\n`).join(''));
      case 'jsonpath':
        return done(renderJsonPath(spec.join('='), isOne ? objects[0] : { items: objects }));
      case 'custom-columns':
        return done(renderColumns(spec.join('='), objects));
      case '':
      case 'wide':
        return done(found.map((one) => `${nameOf(one)}\n`).join(''));
      default:
        throw new Error(`unknown output: ${output}`);
    }
  }

  async #metrics(path: string): Promise<string> {
    const [, namespace = '', pod = ''] =
      /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+):\d+\/proxy\/metrics$/.exec(path) ?? [];
    const [found] = this.#all(PODS).filter(({ metadata }) => metadata.namespace === namespace && metadata.name === pod);
    const program = this.#programs[found?.metadata.labels?.['k8s-app'] ?? ''];
    if (program?.metrics === undefined) throw new Error(`no metrics: ${path}`);
    return await program.metrics();
  }

  async #delete(all: KubectlArguments): Promise<Answer> {
    const folder = all.flags.get('-k');
    const found = typeof folder === 'string' ? this.#made(folder, all) : this.#find(all);
    for (const one of found) {
      await this.#remove(one);
      if (['deployments', 'daemonsets'].includes(one.type.plural)) await this.#end(one.object);
    }
    if (all.flags.get('--wait') === 'false') return done('');
    const isLeft = ({ type, object }: Found): boolean =>
      this.#all(type).some(({ metadata }) => metadata.uid === object.metadata.uid);
    return await this.#gone(() => found.filter(isLeft));
  }

  async #remove({ type, object }: Found): Promise<void> {
    const { name, namespace } = object.metadata;
    if (type.plural !== 'pods') {
      await this.#cluster.run(this.#cluster.scene.kube.delete(type, refOf(object)));
      return;
    }
    if (namespace === 'default') return await this.#cluster.deletePod(name);
    const { api } = this.#cluster.scene.server;
    const resource = api.registry.find('', 'v1', 'pods');
    if (resource === undefined) throw new Error('no Pods');
    const target = { resource, namespace, name, subresource: '', query: new URLSearchParams('gracePeriodSeconds=0') };
    dispatch(api, 'delete', { ...target, user: ADMIN, userAgent: 'kubelet', contentType: '', body: {} });
  }

  /** Ends the program of a workload, and its Pods. */
  async #end(workload: KubeObject): Promise<void> {
    await this.#programs[workload.metadata.name]?.stop();
    const labels = Object.entries(recordOf(recordOf(recordOf(workload['spec'])['selector'])['matchLabels']));
    const { namespace } = workload.metadata;
    for (const pod of this.#all(PODS))
      if (pod.metadata.namespace === namespace && labels.every(([key, value]) => pod.metadata.labels?.[key] === value))
        await this.#remove({ type: PODS, object: pod });
  }

  async #patch(all: KubectlArguments): Promise<Answer> {
    const kind = all.flags.get('--type');
    if (kind !== 'json' && kind !== 'merge') throw new Error(`unknown patch: ${String(kind)}`);
    const body: unknown = JSON.parse(String(all.flags.get('-p')));
    for (const { type, object } of this.#find(all))
      await this.#cluster.run(this.#cluster.scene.kube.patch(type, refOf(object), { kind, body }));
    return done('');
  }

  async #drain({ words, flags }: KubectlArguments): Promise<Answer> {
    const isMeant = parseLabelSelector(String(flags.get('--pod-selector') ?? ''));
    for (const pod of this.#all(PODS))
      if (words.includes(String(recordOf(pod['spec'])['nodeName'])) && isMeant(pod))
        await this.#remove({ type: PODS, object: pod });
    return done('');
  }

  /** `KEY-` takes taints off; a Node without one fails the command, as with kubectl, after the others. */
  async #untaint(all: KubectlArguments): Promise<Answer> {
    const [, word = ''] = all.words;
    if (!word.endsWith('-')) throw new Error(`unknown taint: ${word}`);
    let lacking = 0;
    for (const { object } of this.#find({ ...all, words: all.words.slice(0, 1) })) {
      const taints = listOf(recordOf(object['spec'])['taints']);
      const left = taints.filter((taint) => recordOf(taint)['key'] !== word.slice(0, -1));
      if (left.length === taints.length) lacking += 1;
      else await this.#patchNode(object.metadata.name, { spec: { taints: left } });
    }
    return lacking === 0 ? done('') : { code: 1, stdout: '', stderr: `error: taint "${word}" not found\n` };
  }

  async #patchNode(name: string, body: object): Promise<void> {
    await this.#cluster.run(this.#cluster.scene.kube.patch(NODES, { name }, { kind: 'merge', body }));
  }

  async #gone(left: () => readonly Found[]): Promise<Answer> {
    await this.#cluster
      .until(() => left().length === 0)
      .catch(() => {
        throw new Error(`still there: ${left().map(nameOf).join()}`);
      });
    return done('');
  }

  /** What of a kustomization is in the cluster, as far as a selector says. */
  #made(folder: string, { flags }: KubectlArguments): readonly Found[] {
    const isMeant = parseLabelSelector(String(flags.get('-l') ?? ''));
    const made = this.#kustomizations[folder];
    if (made === undefined) throw new Error(`no kustomization: ${folder}`);
    return made.filter(isMeant).flatMap(({ kind = '', metadata }) =>
      this.#typesOf(kind.toLowerCase()).flatMap((type) =>
        this.#all(type)
          .filter((one) => one.metadata.name === metadata.name && one.metadata.namespace === metadata.namespace)
          .map((object) => ({ type, object })),
      ),
    );
  }

  /** Finds what `KIND/NAME...` or `KINDS [NAME...]` means. @throws Error naming what is not there */
  #find({ verb, words, flags }: KubectlArguments, absent?: 'absent is fine'): readonly Found[] {
    const [first = '', ...others] = words;
    const names = verb === 'annotate' || flags.has('--all') ? [] : others;
    const pairs = first.includes('/') ? words.map((word) => word.split('/')) : named(first, names);
    const namespace = flags.get('-n') ?? 'default';
    const isMeant = parseLabelSelector(String(flags.get('-l') ?? ''));
    const [, node] = /^spec\.nodeName=(.*)$/.exec(String(flags.get('--field-selector') ?? '')) ?? [];
    const isFine = absent !== undefined || flags.has('--ignore-not-found');
    return pairs.flatMap(([kind = '', name]) => {
      const found = this.#typesOf(kind).flatMap((type) =>
        this.#all(type)
          .filter(({ metadata }) => !type.isNamespaced || flags.has('-A') || metadata.namespace === namespace)
          .filter((object) => (name === undefined ? isMeant(object) : object.metadata.name === name))
          .filter(({ spec }) => node === undefined || recordOf(spec)['nodeName'] === node)
          .map((object) => ({ type, object })),
      );
      if (name !== undefined && found.length === 0 && !isFine) throw new Error(`${kind} "${name}" not found`);
      return found;
    });
  }

  /** @throws Error for a kind that the API server does not know */
  #typesOf(word: string): readonly ResourceType[] {
    const [kind = ''] = word.split('.');
    const types = this.#cluster.scene.server.api.registry
      .all()
      .filter((one) => one.plural === kind || one.kind.toLowerCase() === kind || one.shortNames.includes(kind))
      .map(({ group, version, plural, kind: name, namespaced }) => ({
        ...{ group, version, plural, kind: name },
        isNamespaced: namespaced,
      }));
    if (types.length === 0 && !UNSERVED.includes(kind)) throw new Error(`no such kind: ${word}`);
    return types;
  }

  #all({ plural, group }: ResourceType): readonly KubeObject[] {
    // The store's objects are those of the API.
    return this.#cluster.scene.server.objects(plural, group) as readonly KubeObject[];
  }
}

function done(stdout: string): Answer {
  return { code: 0, stdout, stderr: '' };
}

function named(kinds: string, names: readonly string[]): readonly (readonly string[])[] {
  return kinds.split(',').flatMap((kind) => (names.length === 0 ? [[kind]] : names.map((name) => [kind, name])));
}

/** As `-o name` prints it. */
function nameOf({ type, object }: Found): string {
  const group = type.group === '' ? '' : `.${type.group}`;
  return `${type.kind.toLowerCase()}${group}/${object.metadata.name}`;
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
