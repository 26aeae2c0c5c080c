import type { JsonObject } from '../../sim/support/netns.ts';
import { recordIdentities } from './record/cloud.ts';
import { recordConflists } from './record/cni-conf.ts';
import { asFile, rewriteFoundFile, rewriteInstallRecord, rewriteNodeFile } from './record/files.ts';
import { asJournal, rewriteJournal } from './record/journal.ts';
import { recordAlerts, recordChartValues, recordDefinitions, recordManifests } from './record/manifests.ts';
import { recordMessages } from './record/messages.ts';
import {
  recordCommands,
  recordErrors,
  recordEvents,
  recordFindings,
  recordKubernetesNames,
  recordLinkNames,
  recordMetrics,
  recordSettings,
  recordVariables,
} from './record/names.ts';
import { OBJECTS, rewriteObject } from './record/objects.ts';
import { recordProtos } from './record/protos.ts';

/** What is recorded of the product's own tables, by the name of its file: names, types and defaults, and no prose. */
export const TABLES: Readonly<Record<string, () => object>> = {
  'names/settings': recordSettings,
  'names/variables': recordVariables,
  'names/metrics': recordMetrics,
  'names/events': recordEvents,
  'names/findings': recordFindings,
  'names/commands': recordCommands,
  'names/errors': recordErrors,
  'names/kubernetes': recordKubernetesNames,
  'names/links': recordLinkNames,
  'manifests/definitions': recordDefinitions,
  'manifests/objects': recordManifests,
  'manifests/alerts': recordAlerts,
  'manifests/chart-values': recordChartValues,
  'wire/protos': recordProtos,
  'wire/messages': recordMessages,
  'cni/conflists': recordConflists,
  'cloud/identities': recordIdentities,
};

/** What is recorded by having the product read a whole content, of the record before, and write it again. */
export const CONTENTS: Readonly<Record<string, (recorded: JsonObject) => object>> = {
  'journal/full': (recorded) => rewriteJournal(asJournal(recorded)),
  'files/node': (recorded) => rewriteNodeFile(asFile(recorded)),
  'files/found': (recorded) => rewriteFoundFile(asFile(recorded)),
  'files/installed': (recorded) => rewriteInstallRecord(asFile(recorded)),
  ...Object.fromEntries(OBJECTS.map((name) => [`objects/${name}`, rewriteObject])),
};
