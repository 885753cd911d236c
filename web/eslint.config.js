import js from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/'] },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      // Text from a trace is never markup.
      'no-restricted-syntax': [
        'error',
        { selector: "MemberExpression[property.name=/^(innerHTML|outerHTML|insertAdjacentHTML)$/]", message: 'textContent only' },
        { selector: "MemberExpression[object.name='document'][property.name=/^writeln?$/]", message: 'textContent only' },
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: 'text nodes only' },
      ],
    },
  },
  { files: ['*.js', '**/*.mjs'], ...tseslint.configs.disableTypeChecked },
);
