import { AGENT_PROGRAM } from '../../agent/config/agent-config.ts';
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

/** Writes the rules of the programs for the chart's helper `tke-eni.broken-rules`, with the settings that they name: their defaults, and which are lists. */
export function renderRules(): string {
  const rendered = Object.entries(PROGRAMS).map(([component, { options, rules = [] }]) => {
    const named = new Set(rules.flatMap(flagsOf));
    const read = Object.values(options).filter(({ flag }) => named.has(flag));
    const defaults = Object.fromEntries(read.map(({ flag, defaultText }) => [flag, defaultText]));
    const lists = read.filter(({ value }) => value.items !== undefined).map(({ flag }) => flag);
    return [component, { defaults, lists, rules }];
  });
  return `${JSON.stringify(Object.fromEntries(rendered), null, 2)}\n`;
}

/** Settings that a rule names, those in its text included. */
function flagsOf({ flag, refusedWhen, expected }: Rule): readonly string[] {
  const texts = [...expected.matchAll(/\{([a-z-]+)\}/g)].flatMap(([, name = '']) => name);
  return [flag, ...texts, ...refusedWhen.flatMap(flagsOfCondition)];
}

function flagsOfCondition(condition: Condition): readonly string[] {
  if ('sum' in condition) return [...condition.sum, condition.above];
  return 'isSameAs' in condition ? [condition.flag, condition.isSameAs] : [condition.flag];
}
