import { isIP } from 'node:net';

const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  ipv4: (text) => isIP(text) === 4,
  ipv6: (text) => isIP(text) === 6,
  cidr: isCidr,
  mac: (text) => /^([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$/i.test(text),
  uuid: (text) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(text),
  date: (text) => /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)),
  'date-time': (text) => /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}([.,]\d+)?(Z|z|[+-]\d{2}:?\d{2})$/.test(text),
  byte: (text) => /^[A-Za-z0-9+/]*={0,2}$/.test(text),
};

function isCidr(text: string): boolean {
  const [address = '', length = '', ...rest] = text.split('/');
  const family = isIP(address);
  return rest.length === 0 && family !== 0 && /^\d+$/.test(length) && Number(length) <= (family === 4 ? 32 : 128);
}

/** Reports whether a text has a format that the API server checks; formats that it does not know hold. */
export function hasFormat(text: string, format: string): boolean {
  return FORMATS[format]?.(text) ?? true;
}
