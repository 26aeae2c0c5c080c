import { PLUGIN, type Plugin } from '../agent/api/messages.ts';

/** The names of the one executable, with the value that the agent receives for each. */
export const PLUGINS = {
  'tke-route-eni': PLUGIN.PLUGIN_ROUTE_ENI,
  'tke-eni-ipamc': PLUGIN.PLUGIN_ENI_IPAMC,
  // The agent decides whether exclusive ENIs are served.
  'tke-direct-eni': PLUGIN.PLUGIN_DIRECT_ENI,
} as const satisfies Readonly<Record<string, Plugin>>;

/** One of the names of the executable. */
export type PluginName = keyof typeof PLUGINS;

/** Returns the plugin with the name by which the executable was called. */
export function findPlugin(name: string): PluginName | undefined {
  return Object.hasOwn(PLUGINS, name) ? (name as PluginName) : undefined;
}
