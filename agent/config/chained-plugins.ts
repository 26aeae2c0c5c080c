import type { OptionValue } from '../../runtime/settings/option-value.ts';

/** A plugin that the network configuration calls after ours: its object in the list `plugins`. @see CNI SPEC, section 1 */
export type ChainedPlugin = { readonly type: string } & Readonly<Record<string, unknown>>;

/** A name of an executable in the folder of plugins. */
const NAME = '[A-Za-z0-9][A-Za-z0-9._-]{0,63}';

/**
 * Plugins to chain: names of executables with commas between them, or a JSON list of names and of objects with the
 * configuration of a plugin.
 */
export const chainedPluginsValue: OptionValue<readonly ChainedPlugin[]> = {
  metavar: 'PLUGINS',
  expected:
    'names such as cilium-cni with commas between them, or a JSON list of names and plugin objects such as [{"type":"tuning","mtu":1400}]: each once, none of ours, no portmap and bandwidth, which have flags, and no name, cniVersion, prevResult, runtimeConfig or ipam in an object',
  form: { kind: 'text', body: `(${NAME}(,${NAME})*|\\s*\\[\\s*(["{][\\s\\S]*)?\\]\\s*)?` },
  parse: (text) => {
    const plugins = itemsOf(text)?.map(pluginOf);
    if (plugins === undefined || plugins.length > MAX_PLUGINS) return undefined;
    const valid = plugins.filter((plugin) => plugin !== undefined);
    const types = new Set(valid.map(({ type }) => type));
    return types.size === plugins.length ? Object.freeze(valid) : undefined;
  },
  items: (plugins) => plugins.map(({ type }) => type),
};

/** The plugin that chains itself to the link of each Pod. */
export const CILIUM_PLUGIN = 'cilium-cni';

/** Reports whether the plugins contain cilium-cni. */
export function hasCilium(plugins: readonly ChainedPlugin[]): boolean {
  return plugins.some(({ type }) => type === CILIUM_PLUGIN);
}

const MAX_PLUGINS = 16;
/** Plugins that the agent chains or calls itself, and ours, which are called first. */
const REFUSED_TYPES = ['portmap', 'bandwidth', 'tke-route-eni', 'tke-direct-eni', 'tke-eni-ipamc', 'tke-cni'];
/** Keys that a runtime sets, and `ipam`: the Pod has its address already. */
const REFUSED_KEYS = ['name', 'cniVersion', 'prevResult', 'runtimeConfig', 'ipam'];

function itemsOf(text: string): readonly unknown[] | undefined {
  if (!/^\s*\[/.test(text)) return text === '' ? [] : text.split(',');
  try {
    const items: unknown = JSON.parse(text);
    return Array.isArray(items) ? items : undefined;
  } catch {
    return undefined;
  }
}

function pluginOf(item: unknown): ChainedPlugin | undefined {
  if (typeof item === 'string') return pluginOf({ type: item });
  if (typeof item !== 'object' || item === null || !('type' in item) || typeof item.type !== 'string') return undefined;
  const { type } = item;
  const isName = new RegExp(`^${NAME}$`).test(type);
  if (!isName || REFUSED_TYPES.includes(type) || REFUSED_KEYS.some((key) => key in item)) return undefined;
  return { ...item, type };
}
