import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readAgentConfig } from '../../agent/config/agent-config.ts';
import type { AgentConfig } from '../../agent/config/options.ts';
import { readIpamdConfig } from '../../ipamd/config/ipamd-config.ts';
import type { IpamdConfig } from '../../ipamd/config/options.ts';
import type { SettingsInput, SettingsOutcome } from '../../runtime/settings/read-settings.ts';
import { isObject, type JsonObject } from '../../sim/kube-api/object.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { KUBERNETES_FOLDER, readKustomization, readResources, strings } from './read-manifests.ts';

/** Names of the two components, and of most that is theirs. */
export const [AGENT, IPAMD] = ['tke-eni-agent', 'tke-eni-ipamd'] as const;

/** All objects of the base, as they stand in their files. */
export const BASE: readonly JsonObject[] = readResources(KUBERNETES_FOLDER);

/** Returns an object of the base. @throws Error when it is not there */
export function findInBase(kind: string, name: string): JsonObject {
  const found = BASE.find((one) => one['kind'] === kind && at(one, 'metadata', 'name') === name);
  if (found === undefined) throw new Error(`no ${kind} ${name} in the base`);
  return found;
}

/** Returns the objects of a list; none of what is no list. */
export function listOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** The Pods that the base makes, and the container of each. */
export const PODS = {
  agent: at(findInBase('DaemonSet', AGENT), 'spec', 'template', 'spec'),
  ipamd: at(findInBase('Deployment', IPAMD), 'spec', 'template', 'spec'),
};
export const CONTAINERS = { agent: at(PODS.agent, 'containers', 0), ipamd: at(PODS.ipamd, 'containers', 0) };

/** Returns the variables that the generator `name` of a kustomization makes. */
export function literalsOf(folder: string, name: string): Record<string, string> {
  const generators = listOf(readKustomization(join(KUBERNETES_FOLDER, folder))['configMapGenerator']);
  const literals = strings(generators.find((one) => one['name'] === name)?.['literals']);
  return Object.fromEntries(literals.map((one) => [one.split('=', 1)[0] ?? '', one.slice(one.indexOf('=') + 1)]));
}

/** Returns what a process of this container reads its settings from. */
export function settingsInput(container: unknown, env: Record<string, string>): SettingsInput {
  return { argv: strings(at(container, 'args')), env, readFile: (path) => readFileSync(path, 'utf8') };
}

/** Returns the settings that an agent of the base runs with. @throws ConfigError with all that its reader finds wrong */
export function agentConfig(): AgentConfig {
  const env = { ...literalsOf('agent', 'tke-eni-agent-settings'), NODE_NAME: 'n1' };
  return configOf(readAgentConfig(settingsInput(CONTAINERS.agent, env)));
}

/** Returns the settings that ipamd runs with by the example. @throws ConfigError with all that its reader finds wrong */
export function ipamdConfig(): IpamdConfig {
  const folders = ['ipamd', 'overlays/example'].map((folder) => literalsOf(folder, 'tke-eni-ipamd-settings'));
  return configOf(readIpamdConfig(settingsInput(CONTAINERS.ipamd, Object.assign({}, ...folders))));
}

function configOf<C>(outcome: SettingsOutcome<C>): C {
  if (outcome.kind !== 'run') throw new Error(`not to be run: ${outcome.kind}`);
  return outcome.config;
}
