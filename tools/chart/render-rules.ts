import { AGENT_PROGRAM } from '../../agent/config/options.ts';
import { CCM_PROGRAM } from '../../cloud-controller-manager/config/options.ts';
import { IPAMD_PROGRAM } from '../../ipamd/config/options.ts';
import type { SettingsProgram } from '../../runtime/settings/option.ts';
import type { Condition, Rule } from '../../runtime/settings/rule.ts';
import { SCHEDULER_PROGRAM } from '../../scheduler/config/options.ts';
import { WEBHOOK_PROGRAM } from '../../webhook/options.ts';

/** The programs by the values that have their settings. */
const PROGRAMS: Readonly<Record<string, SettingsProgram>> = {
  agent: AGENT_PROGRAM,
  ipamd: IPAMD_PROGRAM,
  scheduler: SCHEDULER_PROGRAM,
  webhook: WEBHOOK_PROGRAM,
  cloudControllerManager: CCM_PROGRAM,
};

/** Writes the rules of the programs for the chart's helper `tke-eni.broken-rules`, with the defaults of the settings that they name. */
export function renderRules(): string {
  const rendered = Object.entries(PROGRAMS).map(([component, { options, rules = [] }]) => {
    const named = new Set(rules.flatMap(flagsOf));
    const defaults = Object.values(options).filter(({ flag }) => named.has(flag));
    return [
      component,
      { defaults: Object.fromEntries(defaults.map(({ flag, defaultText }) => [flag, defaultText])), rules },
    ];
  });
  return `${JSON.stringify(Object.fromEntries(rendered), null, 2)}\n`;
}

/** Settings that a rule names, those in its text included. */
function flagsOf({ flag, refusedWhen, expected }: Rule): readonly string[] {
  const texts = [...expected.matchAll(/\{([a-z-]+)\}/g)].flatMap(([, name = '']) => name);
  return [flag, ...texts, ...refusedWhen.flatMap(flagsOfCondition)];
}

function flagsOfCondition(condition: Condition): readonly string[] {
  return 'sum' in condition ? [...condition.sum, condition.above] : [condition.flag];
}
