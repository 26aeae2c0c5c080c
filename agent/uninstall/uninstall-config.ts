import { option, type SettingsOf, type SettingsProgram } from '../../runtime/settings/option.ts';
import { switchValue, wordValue } from '../../runtime/settings/option-value.ts';
import { readSettings, type SettingsInput, type SettingsOutcome } from '../../runtime/settings/read-settings.ts';
import { OPTIONS } from '../config/options.ts';

/** The agent's own settings, so that it is found what the agent was told, and two more. */
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
    wordValue('exit', 'wait'),
    'exit',
    'What to do on a node that is clean. wait: stay until told to go, for a DaemonSet, whose Pods must not end.',
  ),
  ...OPTIONS,
} as const;

/** What `uninstall` runs with. Frozen. */
export type UninstallConfig = SettingsOf<typeof UNINSTALL_OPTIONS>;

/** The subcommand, for help and docs. */
export const UNINSTALL_PROGRAM: SettingsProgram<typeof UNINSTALL_OPTIONS> = {
  name: 'tke-eni-agent uninstall',
  options: UNINSTALL_OPTIONS,
  source: 'agent/uninstall/uninstall-config.ts',
  example: { flag: 'then', text: 'wait' },
};

/**
 * Reads the settings of `uninstall`: the agent's flags, variables and file are taken as the agent takes them. Pure but
 * for `readFile`.
 * @throws ConfigError with every fault; exit with `EX_CONFIG` then.
 */
export function readUninstallConfig(input: SettingsInput): SettingsOutcome<UninstallConfig> {
  // What does not go together only matters to an agent that runs.
  return readSettings(UNINSTALL_PROGRAM, input, () => {});
}
