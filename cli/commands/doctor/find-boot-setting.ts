import { basename, matchesGlob } from 'node:path';
import type { ConfFile } from './read-conf-files.ts';

/** A line of a file that sets a kernel setting at boot. */
type BootSetting = { readonly path: string; readonly key: string; readonly value: string };

/**
 * Finds the line that decides a kernel setting at boot: the last line with its name, else the last line with a matching
 * glob, unless a line `-name` excludes the setting from globs. Returns undefined when no file sets it.
 * @see sysctl.d(5)
 */
export function findBootSetting(files: readonly ConfFile[], name: string): BootSetting | undefined {
  const target = slashed(name);
  let exact: BootSetting | undefined;
  let byGlob: BootSetting | undefined;
  let isExcluded = false;
  for (const setting of files.flatMap(settingsOf)) {
    const key = slashed(setting.key);
    if (key === target) {
      if (setting.value === '') isExcluded = true;
      else exact = setting;
    } else if (/[*?[]/.test(key) && matchesGlob(target, key)) byGlob = setting;
  }
  return exact ?? (isExcluded ? undefined : byGlob);
}

/** File into which the suggested commands write settings. */
export const OUR_SYSCTL_FILE = '/etc/sysctl.d/99-tke-eni.conf';

/**
 * Returns the command that comments a setting out in a file with precedence over OUR_SYSCTL_FILE; [] where that file
 * has none.
 */
export function commentOutOverride({ path, key }: BootSetting): readonly string[] {
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
    // A name alone, after a dash, is excluded from globs.
    if (at < 0) return raw.trim().startsWith('-') ? [{ path, key: line, value: '' }] : [];
    return [{ path, key: line.slice(0, at).trim(), value: line.slice(at + 1).trim() }];
  });
}

/**
 * Converts a setting's name to the form with slashes. The first separator in a name is its separator; the other
 * character is then part of an interface name.
 */
function slashed(name: string): string {
  const dot = name.indexOf('.');
  const slash = name.indexOf('/');
  if (dot < 0 || (slash >= 0 && slash < dot)) return name;
  return name.replaceAll(/[./]/g, (separator) => (separator === '.' ? '/' : '.'));
}
