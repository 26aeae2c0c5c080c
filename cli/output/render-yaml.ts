import { stringify } from 'yaml';

/** Renders a value as a YAML document. This file loads the YAML library: it is imported where it is needed. */
export function renderYaml(value: unknown): string {
  return stringify(value, { aliasDuplicateObjects: false, lineWidth: 0 });
}
