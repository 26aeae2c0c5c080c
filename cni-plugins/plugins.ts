import { PLUGIN, type Plugin } from '../agent/api/messages.ts';

/** Maps the names that the one executable answers to onto what the agent is told. */
export const PLUGINS = {
  'tke-route-eni': PLUGIN.PLUGIN_ROUTE_ENI,
  'tke-eni-ipamc': PLUGIN.PLUGIN_ENI_IPAMC,
  // Whether exclusive ENIs are served is the agent's answer.
  'tke-direct-eni': PLUGIN.PLUGIN_DIRECT_ENI,
} as const satisfies Readonly<Record<string, Plugin>>;

/** Is one of the names that the one executable answers to. */
export type PluginName = keyof typeof PLUGINS;

/** Finds the plugin that the executable was called as. */
export function findPlugin(name: string): PluginName | undefined {
  return Object.hasOwn(PLUGINS, name) ? (name as PluginName) : undefined;
}
