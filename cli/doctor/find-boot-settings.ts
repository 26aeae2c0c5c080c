import { basename, matchesGlob } from 'node:path';
import type { ConfFile } from './read-conf-files.ts';

/** What a file sets a kernel setting to at boot. */
export type BootSetting = { readonly path: string; readonly key: string; readonly value: string };

/**
 * Finds what a kernel setting is at boot by the files that set it: the last line that names it, else the last glob that
 * matches it and that no line `-name` takes it out of. Undefined when no file sets it.
 * @see sysctl.d(5)
 */
export function findBootSetting(files: readonly ConfFile[], name: string): BootSetting | undefined {
  const wanted = slashed(name);
  let exact: BootSetting | undefined;
  let byGlob: BootSetting | undefined;
  let isExcluded = false;
  for (const setting of files.flatMap(settingsOf)) {
    const key = slashed(setting.key);
    if (key === wanted) {
      if (setting.value === '') isExcluded = true;
      else exact = setting;
    } else if (/[*?[]/.test(key) && matchesGlob(wanted, key)) byGlob = setting;
  }
  return exact ?? (isExcluded ? undefined : byGlob);
}

/** Where the cures write settings. */
export const OUR_SYSCTL_FILE = '/etc/sysctl.d/99-tke-eni.conf';

/** Returns the command that takes a setting out of a file that counts for more than ours; none where ours counts for more. */
export function removeLater({ path, key }: BootSetting): readonly string[] {
  const isEarlier = path !== '/etc/sysctl.conf' && basename(path) < basename(OUR_SYSCTL_FILE);
  if (isEarlier || path === OUR_SYSCTL_FILE) return [];
  const pattern = key.replaceAll(/[.*[\]?\\^$|]/g, '\\$&');
  return [`sed -i --follow-symlinks 's|^[- ]*${pattern}[ \\t]*=|# &|' ${path}`];
}

function settingsOf({ path, text }: ConfFile): readonly BootSetting[] {
  return text.split('\n').flatMap((raw): readonly BootSetting[] => {
    const line = raw.trim().replace(/^-/, '').trim();
    if (line === '' || line.startsWith('#') || line.startsWith(';')) return [];
    const at = line.indexOf('=');
    // A name alone, after a dash, takes it out of the globs.
    if (at < 0) return raw.trim().startsWith('-') ? [{ path, key: line, value: '' }] : [];
    return [{ path, key: line.slice(0, at).trim(), value: line.slice(at + 1).trim() }];
  });
}

/** The first separator of a name says which one separates; the other belongs to interface names. */
function slashed(name: string): string {
  const dot = name.indexOf('.');
  const slash = name.indexOf('/');
  if (dot < 0 || (slash >= 0 && slash < dot)) return name;
  return name.replaceAll(/[./]/g, (separator) => (separator === '.' ? '/' : '.'));
}
