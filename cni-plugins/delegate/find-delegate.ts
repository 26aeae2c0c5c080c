import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { CNI_CODE } from '../../agent/api/cni-code.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { joinLimited, limitText } from '../../runtime/limit-text.ts';
import { readRegularText } from '../../runtime/read-regular-file.ts';
import { CniError } from '../skel/error.ts';
import { type DelegateConf, delegateConfOf } from './delegate-conf.ts';

/**
 * Finds the network of a name among the configuration files of a folder: sorted by file, the first that matches. A file
 * that cannot be read as a network configuration is passed over, and named when nothing matches.
 * @param refusal Why the name is none of the agent's networks, with those that are.
 * @throws CniError code 7 with the names that are accepted; 5 when the folder cannot be read.
 */
export function findDelegate(folder: string, name: string, refusal: string): DelegateConf {
  const names: string[] = [];
  const faults: string[] = [];
  for (const file of confFilesOf(folder)) {
    try {
      const conf = delegateConfOf(JSON.parse(readRegularText(join(folder, file), MAX_CONF_BYTES)));
      if (conf.name === name) return conf;
      names.push(conf.name);
    } catch (error) {
      faults.push(`${file}: ${limitText(messageOf(error), MAX_FAULT)}`);
    }
  }
  const here = names.length === 0 ? 'which has none' : `which has ${joinLimited([...new Set(names)].toSorted())}`;
  throw new CniError(
    CNI_CODE.invalidConf,
    `${refusal}; nor is it the network of a file in ${folder}, ${here}`,
    faults.length === 0 ? "correct the Pod's annotation, or add the file" : `not read: ${joinLimited(faults, '; ')}`,
  );
}

/** Far longer than any configuration: a folder of other files must not keep a Pod's ADD busy. */
const MAX_CONF_BYTES = 256 * 1024;
const MAX_FILES = 256;
const MAX_FAULT = 200;
/** Those that libcni loads. */
const CONF_FILE = /\.(conf|conflist|json)$/;

function confFilesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((file) => CONF_FILE.test(file))
      .toSorted()
      .slice(0, MAX_FILES);
  } catch (cause) {
    const why = messageOf(cause);
    const next = 'make the folder on the node, or set --delegate-conf-dir of the agent to another';
    throw new CniError(CNI_CODE.io, `${folder}: ${why}`, next, { cause });
  }
}
