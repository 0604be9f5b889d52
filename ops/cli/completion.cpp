// Completion scripts for bash and zsh, made from the application itself so that they cannot fall behind.

#include <iostream>

#include "ops/cli/commands.hpp"

namespace troupe::cli {
namespace {

std::string words(const CLI::App& app) {
  std::string out;
  for (const CLI::App* sub : app.get_subcommands({})) out += sub->get_name() + " ";
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) out += "--" + name + " ";
    for (const std::string& name : option->get_snames()) out += "-" + name + " ";
  }
  return out;
}

void bash(const CLI::App& app, std::ostream& out) {
  out << "# bash completion for troupe: source <(troupe completion bash)\n"
         "_troupe() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" command=\"\" word\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case \"$word\" in -*) ;; *) command=\"$word\"; break ;; esac\n"
         "  done\n"
         "  local words\n"
         "  case \"$command\" in\n";
  for (const CLI::App* sub : app.get_subcommands({})) {
    out << "    " << sub->get_name() << ") words=\"" << words(*sub) << "\" ;;\n";
  }
  out << "    *) words=\"" << words(app) << "\" ;;\n"
      << "  esac\n"
         "  case \"${COMP_WORDS[COMP_CWORD-1]}\" in\n"
         "    -f|--file|--kubeconfig|--trace|--ca-file) COMPREPLY=($(compgen -f -- \"$current\")); return "
         ";;\n"
         "    -o|--output) words=\"table wide json yaml\" ;;\n"
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "}\n"
         "complete -F _troupe troupe kubectl-troupe\n";
}

}  // namespace

void add_completion(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("completion", "print a completion script for bash or zsh");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}));
  command->callback([&app, &context, shell] {
    context.run = [&app, shell] {
      if (*shell == "zsh")
        std::cout << "#compdef troupe kubectl-troupe\nautoload -U +X bashcompinit && bashcompinit\n";
      bash(app, std::cout);
      return static_cast<int>(kOk);
    };
  });
}

}  // namespace troupe::cli
