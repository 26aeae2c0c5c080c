import { CNI_CODE } from '../../../agent/api/cni-code.ts';
import { AGENT_PROGRAM } from '../../../agent/config/agent-config.ts';
import { NODE_EVENTS } from '../../../agent/events/event-reasons.ts';
import { UNINSTALL_PROGRAM } from '../../../agent/uninstall/uninstall-config.ts';
import type { Command, OptionSpec, PositionalSpec } from '../../../cli/command/command.ts';
import { EXIT } from '../../../cli/command/exit-code.ts';
import { GLOBAL_OPTIONS } from '../../../cli/command/global-options.ts';
import { ALL_COMMANDS } from '../../../cli/program/run-program.ts';
import { CCM_PROGRAM } from '../../../cloud-controller-manager/config/options.ts';
import { CCM_EVENTS } from '../../../cloud-controller-manager/events/event-reasons.ts';
import * as names from '../../../crd/names.ts';
import { AGENT_LIFE_ANNOTATION, RECORD_LABEL, RESERVED_AT_ANNOTATION } from '../../../crd/names.ts';
import { hostVethAlias, hostVethName, nicAlias, sideName } from '../../../dataplane/host-veth-name.ts';
import { CATALOGUE } from '../../../inspection/catalogue/catalogue.ts';
import { IPAMD_PROGRAM } from '../../../ipamd/config/options.ts';
import { IPAMD_EVENTS } from '../../../ipamd/events/event-reasons.ts';
import type { EventReason } from '../../../kube/events/event-reason.ts';
import { isRequired, type SettingsProgram } from '../../../runtime/settings/option.ts';
import { META_FLAGS, variableOf } from '../../../runtime/settings/render-options.ts';
import { SCHEDULER_PROGRAM } from '../../../scheduler/config/options.ts';
import { isObject } from '../../../sim/support/netns.ts';
import { ERROR_CODES } from '../../../tools/error-docs.ts';
import { metricRows } from '../../../tools/metric-docs.ts';
import { WEBHOOK_PROGRAM } from '../../../webhook/options.ts';
import { productSources } from '../../support/product-sources.ts';

/** Lists the settings of each executable by flag: what it takes, its default, its variable. The key of a file is the flag. */
export function recordSettings(): object {
  const programs = [AGENT_PROGRAM, UNINSTALL_PROGRAM, IPAMD_PROGRAM, SCHEDULER_PROGRAM, WEBHOOK_PROGRAM, CCM_PROGRAM];
  return Object.fromEntries(programs.map((program) => [program.name, settingsOf(program)]));
}

function settingsOf({ options }: SettingsProgram): object {
  const settings = Object.values(options).map((option) => {
    const { flag, value, defaultText } = option;
    const preset = isRequired(option) ? { required: true } : { default: defaultText };
    const takes = value.metavar === '' ? 'switch' : value.metavar;
    return [flag, { takes, ...(value.isList === true ? { list: true } : {}), ...preset, variable: variableOf(flag) }];
  });
  return { ...Object.fromEntries(settings), ...Object.fromEntries(META_FLAGS.map(({ flag }) => [flag, {}])) };
}

/** Lists the metrics of each executable: type, labels, bounds of buckets. */
export function recordMetrics(): object {
  return Object.fromEntries(
    Object.entries(metricRows()).map(([program, rows]) => [
      program,
      Object.fromEntries(rows.map(({ name, type, labels }) => [name, { type, labels: labels.toSorted() }])),
    ]),
  );
}

/** Lists the reasons of events: type, and kinds of objects that they are told of. */
export function recordEvents(): object {
  const ofAgent = Object.entries(NODE_EVENTS).map(([reason, { type }]) => [reason, { type, objects: ['Node'] }]);
  const eventsOf = (events: Readonly<Record<string, EventReason>>): object =>
    Object.fromEntries(Object.entries(events).map(([reason, { type, objects }]) => [reason, { type, objects }]));
  return {
    'tke-eni-agent': Object.fromEntries(ofAgent),
    'tke-eni-ipamd': eventsOf(IPAMD_EVENTS),
    'tke-cloud-controller-manager': eventsOf(CCM_EVENTS),
  };
}

/** Lists the ids of findings with their usual weight. */
export function recordFindings(): object {
  const rows = Object.entries(CATALOGUE).map(([id, { severity, isOurs }]) => [id, { severity, ours: isOurs }]);
  return Object.fromEntries(rows);
}

/** Lists the commands of tke-eni with their words and options, and the exit codes. */
export function recordCommands(): object {
  return {
    commands: Object.fromEntries(ALL_COMMANDS.map((command) => [command.name, commandOf(command)])),
    options: optionsOf(GLOBAL_OPTIONS),
    exitCodes: Object.values(EXIT),
  };
}

function commandOf({ positionals, options, wrongMeans }: Command): object {
  const words = Object.entries<PositionalSpec>(positionals).map(([word, { isOptional, choices }]) => ({
    ...{ word, optional: isOptional === true },
    ...(choices === undefined ? {} : { choices }),
  }));
  return { words, options: optionsOf(options), exits1: wrongMeans !== undefined };
}

function optionsOf(options: Readonly<Record<string, OptionSpec>>): object {
  const rows = Object.entries(options).map(([name, { type, alias, choices, default: preset }]) => [
    name,
    { type, letter: alias, choices, default: preset },
  ]);
  return Object.fromEntries(rows);
}

/** Lists the codes of errors by who gives them, those of CNI with their names. */
export function recordErrors(): object {
  const coded = Object.entries(ERROR_CODES).map(([who, codes]) => [who, setOf(codes)]);
  const cni = Object.entries(CNI_CODE).map(([name, code]) => [code, name]);
  return { ...Object.fromEntries(coded), cni: Object.fromEntries(cni) };
}

/** Lists names in Kubernetes objects: annotations, labels, taints, conditions, finalizers, resources. */
export function recordKubernetesNames(): object {
  const { APPLIED_POLICY_ANNOTATION, RELEASE_BEGUN_ANNOTATION, ALLOW_RELEASE_ANNOTATION } = names;
  const ofNec = [APPLIED_POLICY_ANNOTATION, RELEASE_BEGUN_ANNOTATION, ALLOW_RELEASE_ANNOTATION, AGENT_LIFE_ANNOTATION];
  const ofNode = [names.NODE_SUBNETS_LABEL, names.NODE_STATIC_IP_LABEL, names.NODE_DIRECT_ENI_LABEL];
  const listed = {
    apiVersion: { [names.API_VERSION]: names.API_GROUP },
    annotations: {
      NodeENIConfig: setOf([...Object.values(names.NODE_ENI_CONFIG_ANNOTATION), ...ofNec]),
      Node: setOf(Object.values(names.NODE_ANNOTATION)),
      Pod: setOf(Object.values(names.POD_ANNOTATION)),
      ConfigMap: setOf([names.EIP_SRC_CIDRS_ANNOTATION, names.SUBNETS_SOURCE_ANNOTATION]),
      VpcIPClaim: setOf([RESERVED_AT_ANNOTATION]),
      'VpcIP, VpcENI': setOf([names.CLAIM_EXPIRED_DURATION_ANNOTATION]),
    },
    labels: {
      Node: setOf([...ofNode, names.NODE_INSTANCE_LABEL]),
      'VpcIP, VpcENI': setOf([names.NODE_NAME_LABEL]),
      VpcENI: setOf([names.ENI_ZONE_LABEL]),
      'VpcIP, VpcIPClaim': setOf([`${RECORD_LABEL.key}=${RECORD_LABEL.value}`]),
    },
    taints: setOf(
      [names.ENI_IP_TAINT, names.DIRECT_ENI_TAINT].map(({ key, value, effect }) => `${key}=${value}:${effect}`),
    ),
    conditions: {
      Node: setOf([names.ENI_IP_CONDITION, names.DIRECT_ENI_CONDITION, names.AGENT_REFUSED_CONDITION]),
    },
    finalizers: setOf([names.CLOUD_FINALIZER]),
    resources: setOf(names.EXTENDED_RESOURCES),
  };
  const known = JSON.stringify(listed);
  // What is named there and not listed above.
  const others = textsIn({ ...names }).filter((text) => !known.includes(text));
  return { ...listed, others: setOf(others) };
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return isObject(value) || Array.isArray(value) ? Object.values(value).flatMap(textsIn) : [];
}

/** Makes an object of names, to which a later record can add one. */
function setOf(list: readonly string[]): Readonly<Record<string, true>> {
  return Object.fromEntries(list.map((name) => [name, true]));
}

/** Lists the environment variables that executables read, beside those of their settings and CNI's. */
export function recordVariables(): object {
  const reads = productSources().matchAll(/env\w*(?:\.|\[')([A-Z][A-Z0-9_]{3,})\b/gi);
  return setOf([...reads].map(([, name = '']) => name).filter((name) => name === name.toUpperCase()));
}

/** Lists the names of links that the agent makes, and the texts by which it knows them again. */
export function recordLinkNames(): object {
  const owner = { containerId: '0123456789abcdef', ifName: 'eth0' };
  return {
    'host link of Pod shop/cart-0': hostVethName({ ...owner, podNamespace: 'shop', podName: 'cart-0' }),
    'host link of container 0123456789abcdef': hostVethName(owner),
    'its alias': hostVethAlias(owner),
    'alias of an ENI in it that was eth1': nicAlias(owner, 'eth1'),
    'link beside an ENI': sideName('eth0'),
  };
}
