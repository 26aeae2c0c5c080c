import type { OptionValue } from '../../runtime/settings/option-value.ts';

/** The controllers, by the names that upstream has for them. */
export const CONTROLLER_NAMES = [
  'cloud-node-controller',
  'cloud-node-lifecycle-controller',
  'node-route-controller',
  'service-lb-controller',
] as const;

/** Name of a controller. */
export type ControllerName = (typeof CONTROLLER_NAMES)[number];

/** Older names that upstream still accepts. @see k8s.io/cloud-provider names.CCMControllerAliases */
const ALIASES: Readonly<Record<string, ControllerName>> = {
  'cloud-node': 'cloud-node-controller',
  'cloud-node-lifecycle': 'cloud-node-lifecycle-controller',
  route: 'node-route-controller',
  service: 'service-lb-controller',
};

const KNOWN: ReadonlySet<string> = new Set(CONTROLLER_NAMES);
const NAME_BODY = `-?(${[...CONTROLLER_NAMES, ...Object.keys(ALIASES)].join('|')})`;

/**
 * Which controllers run, in upstream's syntax: `*` is all, `name` is that one, `-name` is all but that one; the first
 * item about a controller counts. The value is the set of those that run.
 */
export const controllersValue: OptionValue<ReadonlySet<ControllerName>> = {
  metavar: 'LIST',
  expected: `* for all, NAME or -NAME, with commas between them; names are ${CONTROLLER_NAMES.join(', ')}`,
  form: { kind: 'text', body: `(\\*|${NAME_BODY})(,(\\*|${NAME_BODY}))*` },
  isList: true,
  parse: (text) => {
    const items = text.split(',').map(readItem);
    if (items.some((item) => item === undefined)) return undefined;
    const isOn = (name: ControllerName): boolean => {
      const own = items.find((item) => item?.name === name);
      return own?.isOn ?? items.some((item) => item?.name === '*');
    };
    return new Set(CONTROLLER_NAMES.filter(isOn));
  },
  items: (running) => [...running],
};

type Item = { readonly name: ControllerName | '*'; readonly isOn: boolean };

function readItem(text: string): Item | undefined {
  if (text === '*') return { name: '*', isOn: true };
  const isOn = !text.startsWith('-');
  const bare = isOn ? text : text.slice(1);
  const name = ALIASES[bare] ?? bare;
  return isControllerName(name) ? { name, isOn } : undefined;
}

function isControllerName(name: string): name is ControllerName {
  return KNOWN.has(name);
}
