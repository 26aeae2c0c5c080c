import { isRecord } from '../runtime/decode.ts';
import { editDistance } from '../runtime/edit-distance.ts';
import { ownText } from '../runtime/own-text.ts';

const NETWORK_NAMES = ['tke-bridge', 'tke-route-eni', 'tke-direct-eni'] as const;

/** A network that a Pod can choose. */
export type NetworkName = (typeof NETWORK_NAMES)[number];

/**
 * What the annotation of a Pod says about its network:
 * - `default`: the annotation is absent or empty, so that the default of the node decides;
 * - `named`: one of our networks;
 * - `other`: a valid name of a network that is not ours;
 * - `refused`: `expected` says what is accepted, `got` is the part that is wrong.
 */
export type PodNetworks =
  | { readonly kind: 'default' }
  | { readonly kind: 'named'; readonly name: NetworkName }
  | { readonly kind: 'other'; readonly name: string }
  | { readonly kind: 'refused'; readonly expected: string; readonly got: string };

/**
 * Reads the annotation by which a Pod chooses its network: `name`, `namespace/name@interface`, or a JSON list with one
 * entry. Namespaces are ignored. A list of several networks is refused. Every component reads it by this function.
 * @see https://github.com/k8snetworkplumbingwg/multi-net-spec
 */
export function readPodNetworks(text = ''): PodNetworks {
  const part = text.trim();
  // Names in it are kept.
  const trimmed = text.length > MAX_TEXT ? ownText(part) : part;
  if (trimmed === '') return { kind: 'default' };
  if (trimmed.length > MAX_TEXT) {
    return refused(`at most ${MAX_TEXT} characters`, `${trimmed.length} characters`);
  }
  // As in the product: one of these characters makes the text JSON.
  const elements = /[[{"]/.test(trimmed) ? readJson(trimmed) : trimmed.split(',').map((one) => readText(one.trim()));
  if (elements === undefined) return refused(JSON_FORM, trimmed);
  const [element] = elements;
  if (element === undefined) return refused(`one of ${ACCEPTED_NETWORKS}`, trimmed);
  return decideNetworks(elements, element, trimmed);
}

/** What the annotation accepts, for error texts. */
export const ACCEPTED_NETWORKS = NETWORK_NAMES.join(', ');

const JSON_FORM = `a JSON list such as [{"name":"tke-route-eni"}] with one of ${ACCEPTED_NETWORKS}`;
/** Most characters of the annotation: a JSON list with one entry is far shorter. */
const MAX_TEXT = 4_096;
/** Networks of a list, which is refused anyway, in which a slip of the hand is looked for. */
const MAX_CHECKED = 16;
const MAX_NAME = 253;
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
/** The interface of a Pod's only network. */
const POD_INTERFACE = 'eth0';

/** One element of the annotation. `fault`: the text cannot be read as `namespace/name@interface`. */
type Element = {
  readonly text: string;
  readonly name: string;
  readonly namespace?: string;
  readonly ifName?: string;
  readonly fault?: true;
};

function refused(expected: string, got: string): PodNetworks {
  return { kind: 'refused', expected, got };
}

function readText(text: string): Element {
  const [path = '', ...interfaces] = text.split('@');
  const parts = path.split('/');
  const name = parts.at(-1) ?? '';
  const [ifName] = interfaces;
  return {
    ...{ text, name },
    ...(parts.length > 1 ? { namespace: parts[0] ?? '' } : {}),
    ...(ifName === undefined ? {} : { ifName }),
    ...(parts.length > 2 || interfaces.length > 1 ? { fault: true } : {}),
  };
}

function readJson(text: string): readonly Element[] | undefined {
  let listed: unknown;
  try {
    listed = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(listed)) return undefined;
  const elements = listed.map((one: unknown) => elementOf(one));
  return elements.every((element) => element !== undefined) ? elements : undefined;
}

function elementOf(value: unknown): Element | undefined {
  if (!isRecord(value)) return undefined;
  const { name, namespace } = value;
  // The product's older name of the field is the second one.
  const ifName = value['interface'] ?? value['interfaceRequest'];
  if (typeof name !== 'string') return undefined;
  return {
    ...{ text: name, name },
    ...(typeof namespace === 'string' && namespace !== '' ? { namespace } : {}),
    ...(typeof ifName === 'string' && ifName !== '' ? { ifName } : {}),
  };
}

function decideNetworks(elements: readonly Element[], first: Element, text: string): PodNetworks {
  for (const element of elements.slice(0, MAX_CHECKED)) {
    const isOurs = NETWORK_NAMES.some((ours) => ours === element.name);
    const meant = isOurs ? undefined : NETWORK_NAMES.find((ours) => isSlipOf(element.name, ours));
    if (meant !== undefined) return refused(meant, element.name);
    const parts = [element.name, element.namespace, element.ifName].filter((part) => part !== undefined);
    if (element.fault === true || !parts.every(isName)) {
      return refused(`a name of lower case letters, digits and "-", one of ${ACCEPTED_NETWORKS}`, element.text || text);
    }
  }
  if (elements.length > 1) {
    return refused(`one network of ${ACCEPTED_NETWORKS}; a list of several networks is not served`, text);
  }
  if (first.ifName !== undefined && first.ifName !== POD_INTERFACE) {
    return refused(`no interface, or ${POD_INTERFACE}: the only network of a Pod`, first.ifName);
  }
  const name = NETWORK_NAMES.find((ours) => ours === first.name);
  return name === undefined ? { kind: 'other', name: first.name } : { kind: 'named', name };
}

function isName(text: string): boolean {
  return text.length <= MAX_NAME && NAME.test(text);
}

const MAX_SLIP_NAME = 32;
const MAX_SLIPS = 2;

/** Reports whether a name is one of our networks but for a slip of the hand. */
function isSlipOf(name: string, ours: string): boolean {
  if (name.length > MAX_SLIP_NAME) return false;
  // `tke-route-eni-2` is the name of another network.
  if (name.startsWith(ours) && /^[-.\d]/.test(name.slice(ours.length))) return false;
  return editDistance(name.toLowerCase(), ours) <= MAX_SLIPS;
}
