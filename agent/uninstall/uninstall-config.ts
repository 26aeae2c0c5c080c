import { option, type SettingsOf, type SettingsProgram } from '../../runtime/settings/option.ts';
import { choiceValue, switchValue } from '../../runtime/settings/option-value.ts';
import { readSettings, type SettingsInput, type SettingsOutcome } from '../../runtime/settings/read-settings.ts';
import { OPTIONS } from '../config/options.ts';

/** The agent's own settings, so that an uninstallation finds what the agent was configured with, and two more. */
export const UNINSTALL_OPTIONS = {
  despitePods: option(
    'Uninstalling',
    'despite-pods',
    switchValue,
    'false',
    'Uninstall even if Pods with addresses of ours live here. They lose their network at once, and kubelet cannot end them, as the plugin that it calls for it is gone: they stay Terminating until the node is rebooted.',
  ),
  afterwards: option(
    'Uninstalling',
    'then',
    choiceValue('exit', 'wait'),
    'exit',
    'What to do on a node that is clean. wait: stay until stopped, for a DaemonSet, whose Pods must not end.',
  ),
  ...OPTIONS,
} as const;

/** The settings of an uninstallation. Frozen. */
export type UninstallConfig = SettingsOf<typeof UNINSTALL_OPTIONS>;

/** Name, settings and example of the subcommand, for help and docs. */
export const UNINSTALL_PROGRAM: SettingsProgram<typeof UNINSTALL_OPTIONS> = {
  name: 'tke-eni-agent uninstall',
  options: UNINSTALL_OPTIONS,
  source: 'agent/uninstall/uninstall-config.ts',
  example: { flag: 'then', text: 'wait' },
};

/**
 * Reads the settings of `uninstall`: the agent's flags, variables and file are read as the agent reads them. The only
 * I/O is `readFile`.
 * @throws ConfigError with every fault; exit with `EX_CONFIG` then.
 */
export function readUninstallConfig(input: SettingsInput): SettingsOutcome<UninstallConfig> {
  // Combinations of settings matter only for an agent that runs.
  return readSettings(UNINSTALL_PROGRAM, input, () => {});
}
