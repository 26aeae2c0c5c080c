/** A network configuration of the node: its path and its text. */
type Conf = { readonly path: string; readonly text: string };

/** Executables of ours that make the link of a Pod. */
const OUR_MAIN_PLUGINS: ReadonlySet<unknown> = new Set(['tke-route-eni', 'tke-direct-eni', 'tke-cni']);

/**
 * Finds the configuration by which runtimes call cilium-cni after our plugin: the first of ours in the order of
 * runtimes, if it chains cilium-cni. With an address of tke-eni-ipamc cilium-cni makes the link itself: that is no chain.
 * @param confs In the order of their names.
 */
export function findCiliumChain<T extends Conf>(confs: readonly T[]): T | undefined {
  for (const conf of confs) {
    const types = pluginTypesOf(conf.text);
    if (types.some((type) => OUR_MAIN_PLUGINS.has(type))) return types.includes('cilium-cni') ? conf : undefined;
  }
  return undefined;
}

/** Lists the types of the plugins that a configuration calls, without what these delegate to; none if it is no JSON. */
export function pluginTypesOf(text: string): readonly unknown[] {
  try {
    const conf: unknown = JSON.parse(text);
    if (typeof conf !== 'object' || conf === null) return [];
    const plugins = 'plugins' in conf && Array.isArray(conf.plugins) ? conf.plugins : [conf];
    return plugins.map((plugin: unknown) =>
      typeof plugin === 'object' && plugin !== null && 'type' in plugin ? plugin.type : undefined,
    );
  } catch {
    return [];
  }
}
