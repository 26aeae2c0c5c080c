import { Faults, isRecord, renderFaults } from '../../runtime/decode.ts';
import { recordOf } from '../../runtime/json.ts';
import type { Victims } from '../decide/decide-preemption.ts';
import { RequestError } from '../http/request-error.ts';

/** A decoded JSON object; its members are not checked yet. */
export type Shape = Readonly<Record<string, unknown>>;

/** The arguments of filter and prioritize. @see k8s.io/kube-scheduler extender/v1 ExtenderArgs */
export type NodesArgs = {
  readonly pod: Shape;
  /** The uid of the Pod. */
  readonly uid: string;
  readonly names: readonly string[];
  /** The Nodes themselves, in the order of `names`; absent when the scheduler sends only names (nodeCacheCapable). */
  readonly nodes?: readonly Shape[];
};

/** The arguments of bind. @see extender/v1 ExtenderBindingArgs */
export type BindArgs = {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly nodeName: string;
};

/** The arguments of preempt. @see extender/v1 ExtenderPreemptionArgs */
type PreemptArgs = { readonly pod: Shape; readonly victims: ReadonlyMap<string, Victims> };

/** Decodes ExtenderArgs. @throws RequestError BAD_SHAPE with every fault */
export function decodeNodesArgs(value: unknown): NodesArgs {
  const faults = new Faults();
  const args = argsOf(value, faults);
  const pod = podOf(args, faults);
  const nodeNames = field(args, 'NodeNames');
  const list = field(args, 'Nodes');
  let names: readonly string[] = [];
  let nodes: readonly Shape[] | undefined;
  if (isTexts(nodeNames)) names = nodeNames;
  else if (nodeNames !== undefined && nodeNames !== null) faults.add('NodeNames', 'a list of names', nodeNames);
  else if (isRecord(list)) {
    nodes = itemsOf(list, faults);
    names = nodes.map(nameOf);
  } else faults.add('NodeNames', 'names, or Nodes with items', nodeNames);
  throwIfAny(faults, 'ExtenderArgs');
  const uid = String((pod['metadata'] as Shape)['uid']);
  return { pod, uid, names, ...(nodes === undefined ? {} : { nodes }) };
}

/** Lists that were checked: `NameLists` gives the same array to many requests. */
const checked = new WeakSet<readonly unknown[]>();

function isTexts(value: unknown): value is readonly string[] {
  if (!Array.isArray(value)) return false;
  if (checked.has(value)) return true;
  const isGood = value.every((one) => typeof one === 'string');
  if (isGood) checked.add(value);
  return isGood;
}

/** Decodes ExtenderBindingArgs. @throws RequestError BAD_SHAPE with every fault */
export function decodeBindArgs(value: unknown): BindArgs {
  const faults = new Faults();
  const args = argsOf(value, faults);
  const decoded = {
    namespace: objectName(args, 'PodNamespace', faults),
    name: objectName(args, 'PodName', faults),
    uid: objectName(args, 'PodUID', faults),
    nodeName: objectName(args, 'Node', faults),
  };
  throwIfAny(faults, 'ExtenderBindingArgs');
  return decoded;
}

/**
 * Decodes ExtenderPreemptionArgs. A victim is either a whole Pod or only its uid.
 * @throws RequestError BAD_SHAPE with every fault
 */
export function decodePreemptArgs(value: unknown): PreemptArgs {
  const faults = new Faults();
  const args = argsOf(value, faults);
  const pod = podOf(args, faults);
  const fullVictims = field(args, 'NodeNameToVictims');
  const metaVictims = field(args, 'NodeNameToMetaVictims');
  const victimsByNode = isRecord(fullVictims) ? fullVictims : metaVictims;
  const victims = new Map<string, Victims>();
  if (!isRecord(victimsByNode)) faults.add('NodeNameToMetaVictims', 'victims by node name', victimsByNode);
  else for (const [name, one] of Object.entries(victimsByNode)) victims.set(name, victimsOf(one, name, faults));
  throwIfAny(faults, 'ExtenderPreemptionArgs');
  return { pod, victims };
}

function victimsOf(value: unknown, nodeName: string, faults: Faults): Victims {
  const path = `victims of ${nodeName}`;
  const none = { uids: [], pdbViolations: 0 };
  if (value === null) return none;
  if (!isRecord(value)) {
    faults.add(path, 'Pods and NumPDBViolations', value);
    return none;
  }
  const pods = field(value, 'Pods') ?? [];
  const uids = Array.isArray(pods) ? pods.map(uidOf) : undefined;
  if (uids === undefined || !uids.every((uid) => uid !== undefined)) {
    faults.add(path, 'Pods, each with a uid', pods);
    return none;
  }
  const violations = field(value, 'NumPDBViolations');
  return { uids, pdbViolations: typeof violations === 'number' ? violations : 0 };
}

/** Reads the uid of a victim: from the metadata of a whole Pod, or from `{UID}`. */
function uidOf(value: unknown): string | undefined {
  if (!isRecord(value)) return undefined;
  const uid = isRecord(value['metadata']) ? value['metadata']['uid'] : field(value, 'UID');
  return typeof uid === 'string' ? uid : undefined;
}

const NOTHING: Shape = {};
/** The characters of a Kubernetes namespace, name or uid. The value becomes part of a URL path. */
const NAME = /^[a-z0-9A-Z]([-a-z0-9A-Z.]{0,251}[a-z0-9A-Z])?$/;

function objectName(args: Shape, name: string, faults: Faults): string {
  const value = field(args, name);
  if (typeof value === 'string' && NAME.test(value)) return value;
  faults.add(name, 'the name of an object', value);
  return '';
}

function argsOf(value: unknown, faults: Faults): Shape {
  if (isRecord(value)) return value;
  faults.add('', 'an object', value);
  return NOTHING;
}

function podOf(args: Shape, faults: Faults): Shape {
  const pod = field(args, 'Pod');
  if (!isRecord(pod)) {
    faults.add('Pod', 'a Pod', pod);
    return NOTHING;
  }
  const metadata = isRecord(pod['metadata']) ? pod['metadata'] : NOTHING;
  for (const name of ['namespace', 'name', 'uid']) {
    const value = metadata[name];
    // RecentPods stores the uid. Without this check it could be as long as the request body.
    const isGood = typeof value === 'string' && NAME.test(value);
    if (!isGood) faults.add(`Pod.metadata.${name}`, 'the name of an object', value);
  }
  return pod;
}

function itemsOf(list: Shape, faults: Faults): readonly Shape[] {
  const items = list['items'] ?? list['Items'] ?? [];
  if (Array.isArray(items) && items.every((one) => isRecord(one) && nameOf(one) !== '')) return items;
  faults.add('Nodes.items', 'a list of Nodes, each with a name', items);
  return [];
}

function nameOf(object: Shape): string {
  const metadata = object['metadata'];
  const name = recordOf(metadata)['name'];
  return typeof name === 'string' ? name : '';
}

/**
 * Looks up a member in any letter case. The Go types have no JSON tags, so the keys are Go's field names; Go reads them
 * in any case.
 */
function field(args: Shape, name: string): unknown {
  if (args[name] !== undefined) return args[name];
  const lowerName = name.toLowerCase();
  const key = Object.keys(args).find((one) => one.toLowerCase() === lowerName);
  return key === undefined ? undefined : args[key];
}

function throwIfAny(faults: Faults, type: string): void {
  if (faults.count === 0) return;
  const text = renderFaults(faults.list, faults.count, MAX_SHOWN_FAULTS);
  throw new RequestError('BAD_SHAPE', `the request is no ${type} of extender/v1: ${text}`);
}

const MAX_SHOWN_FAULTS = 10;
