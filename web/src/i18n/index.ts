// Two languages, one dictionary each with the same keys: a missing translation does not compile.

import { signal } from '@preact/signals';

import { en } from './en';
import { zh } from './zh';

export type Language = 'en' | 'zh';
export type Key = keyof typeof en;
export const kDictionaries: Record<Language, Record<Key, string>> = { en, zh };

function chosenLanguage(): Language {
  const stored = readSetting('language');
  if (stored === 'en' || stored === 'zh') return stored;
  return globalThis.navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

/** Storage may be switched off in the browser: then a setting lasts as long as the page. */
export function readSetting(name: string): string | null {
  try {
    return globalThis.localStorage.getItem(`msmemscope.${name}`);
  } catch {
    return null;
  }
}

export function writeSetting(name: string, value: string): void {
  try {
    globalThis.localStorage.setItem(`msmemscope.${name}`, value);
  } catch {
    // As above.
  }
}

export const language = signal<Language>(chosenLanguage());

export function setLanguage(next: Language): void {
  language.value = next;
  document.documentElement.lang = next === 'zh' ? 'zh-CN' : 'en';
  writeSetting('language', next);
}

/** The text of `key`; {0}, {1} … are replaced by the arguments. */
export function t(key: Key, ...args: readonly (string | number)[]): string {
  return fill(kDictionaries[language.value][key], args);
}

export function fill(template: string, args: readonly (string | number)[]): string {
  return template.replace(/\{(\d)\}/g, (whole, index: string) => String(args[Number(index)] ?? whole));
}

/** `one` for exactly one in English; Chinese has no plural. */
export function plural(count: number, one: Key, many: Key, shown: string): string {
  return t(count === 1 ? one : many, shown);
}
